package usage

import (
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// LargeBuffer is the size of a large buffer in bytes. Measurements showed that it is best for
	// bulk transfers.
	LargeBuffer = 512 << 10
	// maxLargeBuffers is the maximum number of large buffers in use. Blocked connections keep
	// theirs. When all are in use, further callers of GetBuffer get a small buffer.
	maxLargeBuffers = 64
	smallBuffer     = 8 << 10
)

var (
	free sync.Pool
	lent atomic.Int64
)

// GetBuffer returns a buffer of LargeBuffer bytes from a pool, or a smaller one if too many are in
// use. The caller must return it with PutBuffer.
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

// PutBuffer returns a buffer from GetBuffer to the pool. The caller must not use the buffer
// afterwards. PutBuffer does nothing if b is nil.
func PutBuffer(b []byte) {
	if len(b) == LargeBuffer {
		lent.Add(-1)
		free.Put((*[LargeBuffer]byte)(b))
	}
}

// Reader reads from a socket without allocating memory, and holds no buffer while it waits for
// data. Only one goroutine at a time may use it.
type Reader struct {
	socket syscall.RawConn
	read   func(fd uintptr) bool
	most   int
	b      []byte
	n      int
	err    error
}

// NewReader returns a Reader that reads from a socket.
func NewReader(socket syscall.RawConn) *Reader {
	r := &Reader{socket: socket}
	r.read = r.try
	return r
}

// Read waits for data on the socket, and returns a buffer from the pool with at most the given
// number of bytes. The data are the first n bytes of b, and n is 0 at the end of data. The caller
// must return b with PutBuffer, even after an error.
func (r *Reader) Read(most int) (b []byte, n int, err error) {
	r.most, r.n, r.err = most, 0, nil
	waited := r.socket.Read(r.read)
	b, r.b = r.b, nil
	if waited != nil {
		return b, 0, waited
	}
	return b, r.n, r.err
}

// try reads once from the socket, and reports whether Read has a result to return.
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
