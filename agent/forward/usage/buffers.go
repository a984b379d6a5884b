package usage

import (
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// LargeBuffer is the size that measured best for bulk, in bytes.
	LargeBuffer = 512 << 10
	// maxLargeBuffers bounds their number. Connections that stand still keep theirs:
	// with more of them, others get a small one.
	maxLargeBuffers = 64
	smallBuffer     = 8 << 10
)

var (
	free sync.Pool
	lent atomic.Int64
)

// GetBuffer lends the memory that bytes pass through: LargeBuffer bytes, or, when too many are lent, a small one.
func GetBuffer() []byte {
	if lent.Add(1) > maxLargeBuffers {
		lent.Add(-1)
		return make([]byte, smallBuffer)
	}
	if b, ok := free.Get().(*[LargeBuffer]byte); ok {
		return b[:]
	}
	return new([LargeBuffer]byte)[:]
}

// PutBuffer takes back what GetBuffer lent; nil is nothing.
func PutBuffer(b []byte) {
	if len(b) == LargeBuffer {
		lent.Add(-1)
		free.Put((*[LargeBuffer]byte)(b))
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
	r.b = GetBuffer()
	for {
		r.n, r.err = unix.Read(int(fd), r.b[:min(len(r.b), r.most)])
		if r.err != unix.EINTR {
			break
		}
	}
	if r.err != unix.EAGAIN {
		return true
	}
	PutBuffer(r.b)
	r.b = nil
	return false
}
