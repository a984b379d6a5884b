package splice

import (
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// bufferSize is what measured best for bulk; an idle direction holds none.
	bufferSize = 256 << 10
	// maxBuffers is how many there are at most. Connections that stand still keep theirs:
	// with more of them, others get a small one.
	maxBuffers  = 128
	smallBuffer = 8 << 10
)

var buffers pool

type pool struct {
	free  sync.Pool
	taken atomic.Int64
}

func (p *pool) Get() []byte {
	if p.taken.Add(1) > maxBuffers {
		p.taken.Add(-1)
		return make([]byte, smallBuffer)
	}
	if b, ok := p.free.Get().(*[bufferSize]byte); ok {
		return b[:]
	}
	return new([bufferSize]byte)[:]
}

// Put takes back what Get gave; nil is nothing.
func (p *pool) Put(b []byte) {
	if len(b) == bufferSize {
		p.taken.Add(-1)
		p.free.Put((*[bufferSize]byte)(b))
	}
}

// maxUnsent bounds what waits in the kernel for a peer that does not read. What is on its
// way to one that does is not bounded by it.
const maxUnsent = 64 << 10

// boundUnsent does so, where the kernel can: a Unix socket has a bound of its own.
func boundUnsent(c syscall.Conn) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent) })
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
