package tcpstream

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/usage"
)

const (
	// gathered is the number of bytes after which collected writes are written to the connection.
	gathered = 128 << 10
	// maxUnsent is the maximum number of unsent bytes that wait in the kernel. It is small because
	// a reset of a stream has to wait behind them.
	maxUnsent = 256 << 10
)

// keepAlive detects a peer that is gone while this side sends nothing.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5}

// userTimeout is the time after which the kernel ends a connection whose sent bytes are not
// acknowledged (tcp(7)).
const userTimeout = 15 * time.Second

// Socket is the connection below TLS. It is either a TCP connection (NewSocket) or a stream through
// a relay (NewRelayed). It reads all available bytes at once, and sends the parts of a frame with
// few writes. It holds buffers only while they contain data.
type Socket struct {
	lower

	// The following fields belong to the reader.
	lent, rest []byte // lent is a pooled buffer, and rest its part that TLS has not read yet
	eager      bool   // Read returns an error instead of waiting

	// The following fields belong to the writer.
	gathering bool
	out       []byte // pooled buffer; nil if it is empty
	n         int
}

// lower is the connection that carries the bytes of a Socket. It hides the difference between a TCP
// connection and a stream through a relay.
type lower interface {
	net.Conn
	CloseWrite() error
	// SetLinger(0) makes Close reset the connection.
	SetLinger(seconds int) error
	// receive waits for bytes and returns them in a pooled buffer. The argument most is the largest
	// number of bytes that it may return. The result n is their number, which is 0 at the end of
	// data.
	receive(most int) (b []byte, n int, err error)
	// watch is called when the connection will not be read for a while. quiet is called afterwards.
	watch()
	// quiet reports whether the other side has neither closed the connection nor sent unread data.
	quiet() bool
	// stats returns the counters of the connection. It returns an error if the other side has reset
	// the connection.
	stats() (usage.Stats, error)
}

// tcp is the lower part of a Socket that uses a TCP connection.
type tcp struct {
	*net.TCPConn
	raw syscall.RawConn
	in  *usage.Reader
}

// NewSocket returns a Socket that uses and owns a TCP connection.
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
	return &Socket{lower: &tcp{TCPConn: c, raw: raw, in: usage.NewReader(raw)}}, err
}

func (t *tcp) receive(most int) ([]byte, int, error) { return t.in.Read(most) }

func (t *tcp) watch() {}

func (t *tcp) quiet() bool {
	quiet := false
	err := t.raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		quiet = err == unix.EAGAIN
	})
	return err == nil && quiet
}

// stats returns the kernel's counters of the connection.
func (t *tcp) stats() (s usage.Stats, err error) {
	var info *unix.TCPInfo
	if e := t.raw.Control(func(fd uintptr) {
		if info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			var unread int
			unread, err = unix.IoctlGetInt(int(fd), unix.SIOCINQ)
			s.Unread = int64(unread)
		}
	}); e != nil || err != nil {
		return s, nil
	}
	if info.State == unix.BPF_TCP_CLOSE {
		err = unix.ECONNRESET
	}
	s.Received, s.Packets, s.Sent = int64(info.Bytes_received), int64(info.Segs_in), int64(info.Bytes_acked)
	return s, err
}

// nothing is the error that Read returns if it may not wait and no data is available. TLS can
// continue after this error, because the error is temporary.
type nothing struct{}

func (nothing) Error() string   { return "nothing to read now" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }

func (s *Socket) Read(p []byte) (n int, err error) {
	if len(s.rest) == 0 {
		if s.eager {
			return 0, nothing{}
		}
		if s.lent, n, err = s.receive(usage.LargeBuffer); n > 0 {
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

// release returns the read buffer to the pool.
func (s *Socket) release() {
	usage.PutBuffer(s.lent)
	s.lent, s.rest = nil, nil
}

func (s *Socket) Write(p []byte) (int, error) {
	if !s.gathering {
		return s.lower.Write(p)
	}
	if s.out == nil {
		s.out = usage.GetBuffer()
	}
	if s.n+len(p) > len(s.out) {
		if err := s.flush(); err != nil {
			return 0, err
		}
		if len(p) > len(s.out) {
			return s.lower.Write(p)
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
	_, err := s.lower.Write(s.out[:s.n])
	s.n = 0
	return err
}

// gather makes Write collect data in a buffer, until written is called.
func (s *Socket) gather() { s.gathering = true }

// written ends the collecting that gather began, and writes the collected data.
func (s *Socket) written() error {
	s.gathering = false
	err := s.flush()
	usage.PutBuffer(s.out)
	s.out = nil
	return err
}

// idle reports whether the connection is open and has no unread data.
func (s *Socket) idle() bool { return len(s.rest) == 0 && s.quiet() }
