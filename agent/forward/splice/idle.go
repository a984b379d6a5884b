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

// period is the minimum time after which a socket is idle; it is detected within twice that time. A
// busy socket is only checked once in each period.
const period = 500 * time.Millisecond

// events is the maximum number of sockets handled at a time.
const events = 128

// Lot waits for idle sockets without a goroutine or buffer for each: one goroutine waits for all of
// them (epoll(7)). A reader first waits in the usual way. After a period without data its read
// fails with os.ErrDeadlineExceeded; the reader then calls Park and ends its goroutine. The zero
// Lot is empty and ready for use. An empty Lot releases its resources after a while.
type Lot struct {
	mu      sync.Mutex
	sockets map[*Socket]struct{}
	parked  map[uint64]*Socket
	last    uint64 // last key in parked
	epoll   *os.File
}

// Socket is a socket in a Lot. Only one goroutine at a time may read it.
type Socket struct {
	lot       *Lot
	conn      Parkable
	raw       syscall.RawConn
	resume    func()
	interrupt func()

	reads, writes atomic.Uint32 // number of completed reads and writes

	// The following fields are guarded by the Lot's lock.
	seen, seenWrites uint32 // values of reads and writes at the last check
	interrupted      bool   // interrupt was called since the last write
	key              uint64 // set while the socket is parked
}

// Parkable is a connection with a file descriptor.
type Parkable interface {
	net.Conn
	syscall.Conn
}

// Add adds a socket until Remove is called. When a parked socket becomes readable, resume is called
// in a new goroutine. interrupt, which may be nil, is called once each time nothing has been
// written for a period.
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

// Remove removes the socket, which must not be parked.
func (s *Socket) Remove() {
	s.lot.mu.Lock()
	defer s.lot.mu.Unlock()
	delete(s.lot.sockets, s)
}

// Raw returns the connection for reading. Progress must be called after each read.
func (s *Socket) Raw() syscall.RawConn { return s.raw }

// Progress records that a read has ended.
func (s *Socket) Progress() { s.reads.Add(1) }

// Wrote records that something was written.
func (s *Socket) Wrote() { s.writes.Add(1) }

// Park waits for the socket without a goroutine. When it becomes readable, or Wake is called,
// resume is called. The caller must not read the socket after Park, unless Park returns an error.
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

// Wake ends Park. It must be called for a socket that is closed, because nothing else would resume
// it.
func (s *Socket) Wake() {
	s.lot.mu.Lock()
	defer s.lot.mu.Unlock()
	s.lot.wake(s.key)
}

// wake resumes a socket if it is still parked. The caller holds the lock.
func (l *Lot) wake(key uint64) {
	s := l.parked[key]
	if s == nil {
		return
	}
	delete(l.parked, key)
	// fails harmlessly for a closed socket
	_ = s.raw.Control(func(fd uintptr) {
		if epoll, err := l.epoll.SyscallConn(); err == nil {
			_ = epoll.Control(func(at uintptr) { _ = unix.EpollCtl(int(at), unix.EPOLL_CTL_DEL, int(fd), nil) })
		}
	})
	go s.resume()
}

// run wakes sockets that become readable until there are none left.
func (l *Lot) run(epoll *os.File) {
	defer epoll.Close()
	raw, err := epoll.SyscallConn()
	if err != nil {
		panic(err) // cannot happen, because the file is open
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

// sweep interrupts reads that have waited since the last sweep. It reports whether there are
// sockets, and releases all resources if there are none.
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
