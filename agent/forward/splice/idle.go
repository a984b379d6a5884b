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

// period is after how long at least, and twice that at most, a socket is idle. What is busy
// costs nothing but a look each time.
const period = 500 * time.Millisecond

// events is how many sockets are handled at a time.
const events = 128

// Lot waits for sockets on which nothing happens, without a goroutine or a buffer for each: one
// goroutine waits for all of them (epoll(7)). Whoever reads a socket waits in the usual way at first.
// After a while in which nothing came its read fails with os.ErrDeadlineExceeded; it calls Park, and
// its goroutine ends. The zero Lot is empty and ready; one that is empty holds nothing after a while.
type Lot struct {
	mu      sync.Mutex
	sockets map[*Socket]struct{}
	parked  map[uint64]*Socket
	last    uint64 // of the keys of parked
	epoll   *os.File
}

// Socket is one that Read is called on by one goroutine at a time.
type Socket struct {
	lot       *Lot
	conn      Parkable
	raw       syscall.RawConn
	resume    func()
	interrupt func()

	reads, writes atomic.Uint32 // ended

	// Under the lot's lock:
	seen, seenWrites uint32 // of those
	interrupted      bool   // since seenWrites
	key              uint64 // while it is parked
}

// Parkable is a connection of the kernel's.
type Parkable interface {
	net.Conn
	syscall.Conn
}

// Add adds a socket until Remove is called. resume is called in a goroutine of its own when
// a parked one is to be read again; interrupt, unless it is nil, once each time when nothing
// has been written for a while.
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

// Remove forgets the socket, which must not be parked.
func (s *Socket) Remove() {
	s.lot.mu.Lock()
	defer s.lot.mu.Unlock()
	delete(s.lot.sockets, s)
}

// Raw is for reading. Progress must be called after each read.
func (s *Socket) Raw() syscall.RawConn { return s.raw }

// Progress notes that a read has ended.
func (s *Socket) Progress() { s.reads.Add(1) }

// Wrote notes that there was something to write.
func (s *Socket) Wrote() { s.writes.Add(1) }

// Park has resume be called when there is something to read, or Wake is called. Whoever read
// the socket must not do so any more, unless there is an error.
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

// Wake ends Park. A socket that was closed must be woken up: nothing else does.
func (s *Socket) Wake() {
	s.lot.mu.Lock()
	defer s.lot.mu.Unlock()
	s.lot.wake(s.key)
}

// wake resumes a parked socket, if it still is. The caller holds the lock.
func (l *Lot) wake(key uint64) {
	s := l.parked[key]
	if s == nil {
		return
	}
	delete(l.parked, key)
	// A closed one is not there any more.
	_ = s.raw.Control(func(fd uintptr) {
		if epoll, err := l.epoll.SyscallConn(); err == nil {
			_ = epoll.Control(func(at uintptr) { _ = unix.EpollCtl(int(at), unix.EPOLL_CTL_DEL, int(fd), nil) })
		}
	})
	go s.resume()
}

// run wakes up those that have something to read, until there are none any more.
func (l *Lot) run(epoll *os.File) {
	defer epoll.Close()
	raw, err := epoll.SyscallConn()
	if err != nil {
		panic(err) // it is open
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

// sweep interrupts reads that have waited since the last time. It reports whether there are
// sockets, and lets go of everything when there are none.
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
	if err := unix.SetNonblock(fd, true); err != nil { // so that the runtime waits for it
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "epoll"), nil
}
