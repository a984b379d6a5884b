package splice

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// period is the minimum time after which a socket counts as idle. An idle socket is found within
// twice this time. A busy socket is checked only once in each period.
const period = 500 * time.Millisecond

// events is the maximum number of ready sockets that are handled at a time.
const events = 128

// Lot waits for data on many idle sockets with a single goroutine (epoll(7)), so that an idle
// socket needs neither a goroutine nor a buffer. At first, a reader waits in the usual way. If no
// data arrives for a period, its read fails with os.ErrDeadlineExceeded. The reader then calls
// Socket.Park and ends its goroutine.
//
// The zero Lot is empty and ready for use. A Lot is safe for concurrent use. An empty Lot releases
// its resources after a while.
type Lot struct {
	mu      sync.Mutex
	sockets map[*Socket]struct{}
	parked  map[uint64]*Socket
	last    uint64 // last key that was used in parked
	epoll   *os.File
}

// Socket is a socket in a Lot. While it is idle, the Lot waits for data in place of the goroutine
// that reads from the socket. Only one goroutine at a time may read from it.
type Socket struct {
	lot       *Lot
	conn      Parkable
	raw       syscall.RawConn
	resume    func()
	interrupt func()

	reads, writes atomic.Uint32 // number of completed reads and writes

	// The following fields are guarded by the Lot's lock.
	seen, seenWrites uint32 // values of reads and writes at the last check
	interrupted      bool   // interrupt was called after the last write
	key              uint64 // key in parked; set while the socket is parked
}

// Parkable is a connection on which a Lot can wait for data, because it has a file descriptor.
type Parkable interface {
	net.Conn
	syscall.Conn
}

// Add adds a connection to the Lot and returns its Socket, which the caller must remove with
// Remove. After Socket.Park, the Lot calls resume in a new goroutine when the connection becomes
// readable. If interrupt is not nil, the Lot calls it once whenever nothing was written for a
// period.
func (l *Lot) Add(c Parkable, resume, interrupt func()) (*Socket, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &Socket{lot: l, conn: c, raw: raw, resume: resume, interrupt: interrupt}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoll == nil {
		if l.epoll, err = newEpoll(); err != nil {
			return nil, err
		}
		l.sockets, l.parked = map[*Socket]struct{}{}, map[uint64]*Socket{}
		go l.run(l.epoll)
	}
	l.sockets[s] = struct{}{}
	return s, nil
}

// Remove removes the socket from its Lot. The socket must not be parked at that moment.
func (s *Socket) Remove() {
	s.lot.mu.Lock()
	defer s.lot.mu.Unlock()
	delete(s.lot.sockets, s)
}

// Raw returns the raw connection from which the reader of the socket reads. After each read, the
// reader must call Progress.
func (s *Socket) Raw() syscall.RawConn { return s.raw }

// Progress records that the reader has finished a read, so that the socket does not count as idle.
func (s *Socket) Progress() { s.reads.Add(1) }

// Wrote records that data was written, so that the Lot does not call interrupt.
func (s *Socket) Wrote() { s.writes.Add(1) }

// Park lets the Lot wait for data on the socket, so that the goroutine that reads can end. The Lot
// calls resume when the socket becomes readable, or when Wake is called. Until then, the caller
// must not read from the socket. If Park returns an error, the Lot does not wait.
func (s *Socket) Park() error {
	if err := s.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	l := s.lot
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	epoll, err := l.epoll.SyscallConn()
	if err != nil {
		return err
	}
	failed := s.raw.Control(func(fd uintptr) {
		e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(uint32(l.last)), Pad: int32(uint32(l.last >> 32))}
		if failed := epoll.Control(func(at uintptr) { err = unix.EpollCtl(int(at), unix.EPOLL_CTL_ADD, int(fd), &e) }); failed != nil {
			err = failed
		}
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	s.key = l.last
	l.parked[s.key] = s
	return nil
}

// Wake makes the Lot call resume if the socket is parked. It must be called when a socket is
// closed, because a closed socket never becomes readable.
func (s *Socket) Wake() {
	s.lot.mu.Lock()
	defer s.lot.mu.Unlock()
	s.lot.wake(s.key)
}

// wake resumes the socket with a key if it is still parked. The caller holds the lock.
func (l *Lot) wake(key uint64) {
	s := l.parked[key]
	if s == nil {
		return
	}
	delete(l.parked, key)
	// This fails for a closed socket, which does no harm.
	_ = s.raw.Control(func(fd uintptr) {
		if epoll, err := l.epoll.SyscallConn(); err == nil {
			_ = epoll.Control(func(at uintptr) { _ = unix.EpollCtl(int(at), unix.EPOLL_CTL_DEL, int(fd), nil) })
		}
	})
	go s.resume()
}

// run wakes parked sockets when they become readable. It returns when the Lot is empty.
func (l *Lot) run(epoll *os.File) {
	defer epoll.Close()
	raw, err := epoll.SyscallConn()
	if err != nil {
		panic(err) // cannot happen: the file is open
	}
	var ready [events]unix.EpollEvent
	for {
		n := 0
		_ = epoll.SetReadDeadline(time.Now().Add(period))
		for err = nil; err == nil; {
			err = raw.Read(func(fd uintptr) bool {
				n, _ = unix.EpollWait(int(fd), ready[:], 0)
				return n > 0
			})
			if err == nil {
				l.wakeAll(ready[:n])
			}
		}
		if !l.sweep() {
			return
		}
	}
}

func (l *Lot) wakeAll(ready []unix.EpollEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range ready {
		l.wake(uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32)
	}
}

// sweep interrupts the reads and streams that have been idle since the last sweep. It returns false
// if the Lot is empty, after it has released all resources.
func (l *Lot) sweep() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sockets) == 0 {
		l.epoll, l.sockets, l.parked = nil, nil, nil
		return false
	}
	for s := range l.sockets {
		switch reads := s.reads.Load(); {
		case reads != s.seen:
			s.seen = reads
		case l.parked[s.key] != s:
			_ = s.conn.SetReadDeadline(past)
		}
		switch writes := s.writes.Load(); {
		case s.interrupt == nil:
		case writes != s.seenWrites:
			s.seenWrites, s.interrupted = writes, false
		case !s.interrupted:
			s.interrupted = true
			s.interrupt()
		}
	}
	return true
}

func newEpoll() (*os.File, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that the runtime's poller waits for it
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "epoll"), nil
}
