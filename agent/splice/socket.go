package splice

import (
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

// socket reads a connection without holding a buffer while it waits, and sees
// a reset that comes after the end of data.
type socket struct{ raw syscall.RawConn }

func newSocket(c syscall.Conn) (socket, error) {
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
		// Hang-up: the peer has closed, or both directions have ended.
		poll := []unix.PollFd{{Fd: int32(fd)}}
		_, e = unix.Poll(poll, 0)
		return e == nil && poll[0].Revents&unix.POLLHUP != 0
	})
	if werr != nil {
		return nil // closed by the other direction, which knows why
	}
	return err
}
