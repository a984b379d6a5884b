// Package buffers lends the memory that bytes pass through. Whoever waits holds none.
package buffers

import (
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// Large is what measured best for bulk.
	Large = 512 << 10
	// maxLarge is how many there are at most. Connections that stand still keep theirs:
	// with more of them, others get a small one.
	maxLarge = 64
	small    = 8 << 10
)

var (
	free  sync.Pool
	taken atomic.Int64
)

// Get lends a buffer of Large bytes, or, when too many are lent, a small one.
func Get() []byte {
	if taken.Add(1) > maxLarge {
		taken.Add(-1)
		return make([]byte, small)
	}
	if b, ok := free.Get().(*[Large]byte); ok {
		return b[:]
	}
	return new([Large]byte)[:]
}

// Put takes back what Get lent; nil is nothing.
func Put(b []byte) {
	if len(b) == Large {
		taken.Add(-1)
		free.Put((*[Large]byte)(b))
	}
}

// Reader reads a socket; one goroutine at a time may use it. A read allocates nothing.
type Reader struct {
	socket syscall.RawConn
	read   func(fd uintptr) bool
	most   int
	b      []byte
	n      int
	err    error
}

// NewReader makes the reader of a socket.
func NewReader(socket syscall.RawConn) *Reader {
	r := &Reader{socket: socket}
	r.read = r.try
	return r
}

// Read waits until the socket has bytes and returns them, most of them or fewer, in a buffer; n
// is 0 at the end of data.
func (r *Reader) Read(most int) (b []byte, n int, err error) {
	r.most, r.n, r.err = most, 0, nil
	waited := r.socket.Read(r.read)
	b, r.b = r.b, nil
	if waited != nil {
		return b, 0, waited
	}
	return b, r.n, r.err
}

// try reports whether there is something to return.
func (r *Reader) try(fd uintptr) bool {
	r.b = Get()
	for {
		r.n, r.err = unix.Read(int(fd), r.b[:min(len(r.b), r.most)])
		if r.err != unix.EINTR {
			break
		}
	}
	if r.err != unix.EAGAIN {
		return true
	}
	Put(r.b)
	r.b = nil
	return false
}
