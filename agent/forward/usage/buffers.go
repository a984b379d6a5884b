package usage

import (
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// LargeBuffer is the size of a buffer in bytes. It was measured to be best for bulk transfers.
	LargeBuffer = 512 << 10
	// maxLargeBuffers bounds the number of large buffers in use. Blocked connections keep theirs;
	// after that, others get a small one.
	maxLargeBuffers = 64
	smallBuffer     = 8 << 10
)

var (
	free sync.Pool
	lent atomic.Int64
)

// GetBuffer returns a buffer for forwarding: LargeBuffer bytes, or a small one if too many are in
// use.
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

// PutBuffer returns a buffer to the pool; b may be nil.
func PutBuffer(b []byte) {
	if len(b) == LargeBuffer {
		lent.Add(-1)
		free.Put((*[LargeBuffer]byte)(b))
	}
}

// Reader reads from a socket without allocating. It must be used by one goroutine at a time.
type Reader struct {
	socket syscall.RawConn
	read   func(fd uintptr) bool
	most   int
	b      []byte
	n      int
	err    error
}

// NewReader returns a Reader for a socket.
func NewReader(socket syscall.RawConn) *Reader {
	r := &Reader{socket: socket}
	r.read = r.try
	return r
}

// Read waits until the socket has data and returns a buffer with up to most bytes. n is 0 at the
// end of data.
func (r *Reader) Read(most int) (b []byte, n int, err error) {
	r.most, r.n, r.err = most, 0, nil
	waited := r.socket.Read(r.read)
	b, r.b = r.b, nil
	if waited != nil {
		return b, 0, waited
	}
	return b, r.n, r.err
}

// try reports whether there is a result to return.
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
