package splice

import (
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// bufferSize is what measured best for bulk; an idle direction holds none.
const bufferSize = 256 << 10

var buffers pool

type pool struct{ free sync.Pool }

func (p *pool) Get() []byte {
	if b, ok := p.free.Get().(*[bufferSize]byte); ok {
		return b[:]
	}
	return new([bufferSize]byte)[:]
}

// Put takes back what Get gave; nil is nothing.
func (p *pool) Put(b []byte) {
	if b != nil {
		p.free.Put((*[bufferSize]byte)(b))
	}
}

// socket reads a TCP connection without holding a buffer while it waits, and sees
// a reset that comes after the end of data.
type socket struct{ raw syscall.RawConn }

func newSocket(c *net.TCPConn) (socket, error) {
	raw, err := c.SyscallConn()
	return socket{raw}, err
}

// read returns a pooled buffer with n bytes in it; n is 0 at the end of data.
func (s socket) read() (b []byte, n int, err error) {
	werr := s.raw.Read(func(fd uintptr) bool {
		b = buffers.Get()
		for {
			n, err = unix.Read(int(fd), b)
			if err != unix.EINTR {
				break
			}
		}
		if err != unix.EAGAIN {
			return true
		}
		buffers.Put(b)
		b = nil
		return false
	})
	if werr != nil {
		return b, 0, werr
	}
	return b, n, err
}

// awaitReset waits, after the end of data, until the connection is closed. The
// error is nil when it ended in order.
func (s socket) awaitReset() (err error) {
	werr := s.raw.Read(func(fd uintptr) bool {
		soerr, e := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if e != nil || soerr != 0 {
			err = unix.ECONNRESET
			return true
		}
		info, e := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if e != nil {
			err = e
			return true
		}
		return info.State != tcpCloseWait
	})
	if werr != nil {
		return nil // closed by the other direction, which knows why
	}
	return err
}

// tcpCloseWait is the kernel's state of a connection whose peer has ended its
// direction while ours is open (include/net/tcp_states.h).
const tcpCloseWait = 8
