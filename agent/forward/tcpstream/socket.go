package tcpstream

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/usage"
)

const (
	// gathered is the number of sealed bytes of a frame after which they are written.
	gathered = 128 << 10
	// maxUnsent bounds the data that waits in the kernel, because a reset of a stream has to wait
	// behind it.
	maxUnsent = 256 << 10
)

// keepAlive detects a peer that is gone while nothing is sent.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5}

// userTimeout is the time that sent bytes may remain unacknowledged (tcp(7)).
const userTimeout = 15 * time.Second

// Socket is a TCP connection below TLS. It reads all available bytes with one system call, and
// writes most of a frame with one. It holds buffers only while they contain data.
type Socket struct {
	*net.TCPConn
	raw syscall.RawConn

	// The following fields belong to the reader.
	in         *usage.Reader
	lent, rest []byte // a pooled buffer, and its part that TLS has not read yet
	eager      bool   // Read does not wait

	// The following fields belong to the writer.
	gathering bool
	out       []byte // a pooled buffer, nil if empty
	n         int
}

// NewSocket returns a Socket that owns c.
func NewSocket(c *net.TCPConn) (*Socket, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := c.SetKeepAliveConfig(keepAlive); err != nil {
		return nil, err
	}
	if e := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
		if err == nil {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
		}
	}); e != nil {
		return nil, e
	}
	return &Socket{TCPConn: c, raw: raw, in: usage.NewReader(raw)}, err
}

// nothing is the error of an eager Read without data. TLS can continue after it, because it is
// temporary.
type nothing struct{}

func (nothing) Error() string   { return "nothing to read now" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

func (s *Socket) Read(p []byte) (n int, err error) {
	if len(s.rest) == 0 {
		if s.eager {
			return 0, nothing{}
		}
		if s.lent, n, err = s.in.Read(usage.LargeBuffer); n > 0 {
			s.rest = s.lent[:n]
		} else {
			s.release()
			if err == nil {
				err = errEnded
			}
			return 0, err
		}
	}
	n = copy(p, s.rest)
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		s.release()
	}
	return n, nil
}

// release returns the read buffer.
func (s *Socket) release() {
	usage.PutBuffer(s.lent)
	s.lent, s.rest = nil, nil
}

func (s *Socket) Write(p []byte) (int, error) {
	if !s.gathering {
		return s.TCPConn.Write(p)
	}
	if s.out == nil {
		s.out = usage.GetBuffer()
	}
	if s.n+len(p) > len(s.out) {
		if err := s.flush(); err != nil {
			return 0, err
		}
		if len(p) > len(s.out) {
			return s.TCPConn.Write(p)
		}
	}
	s.n += copy(s.out[s.n:], p)
	if s.n >= gathered {
		return len(p), s.flush()
	}
	return len(p), nil
}

func (s *Socket) flush() error {
	if s.n == 0 {
		return nil
	}
	_, err := s.TCPConn.Write(s.out[:s.n])
	s.n = 0
	return err
}

// gather collects writes until written is called.
func (s *Socket) gather() { s.gathering = true }

// written ends gather and writes the collected data.
func (s *Socket) written() error {
	s.gathering = false
	err := s.flush()
	usage.PutBuffer(s.out)
	s.out = nil
	return err
}

// quiet reports whether the peer has neither closed the connection nor sent unread data.
func (s *Socket) quiet() bool {
	if len(s.rest) > 0 {
		return false
	}
	quiet := false
	err := s.raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		quiet = err == unix.EAGAIN
	})
	return err == nil && quiet
}
