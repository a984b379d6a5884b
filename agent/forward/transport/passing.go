package transport

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/agent/forward/handover"
)

// passBuffer is the number of bytes of packets that may wait for a draining process. Further
// packets are lost, as in any network.
const passBuffer = 4 << 20

// socket is a UDP socket that several processes share while the forwarder is upgraded. Each process
// has a generation, and all of them send through the socket. Only the newest process reads the
// socket. It passes each packet for an older generation to that process, with the packet's source
// address and control messages.
type socket struct {
	udpSocket
	own     generation
	drained atomic.Pointer[net.UnixConn] // source of packets once this process drains; nil before
	scratch []byte                       // buffer of the reader

	mu       sync.Mutex
	deadline time.Time
	passes   atomic.Pointer[map[generation]*net.UnixConn] // connections to older generations
	offered  *net.UnixConn                                // connection to the next process, until it takes over
	closed   bool
}

func newSocket(c *net.UDPConn) (*socket, error) {
	merged, err := newUDPSocket(c)
	if err != nil {
		return nil, err
	}
	return &socket{udpSocket: merged, own: newGeneration(), scratch: make([]byte, 0, 1<<16)}, nil
}

// passPrefix returns the prefix of the names under which a socket's files are passed to the next
// process. The name of a file is this prefix and a generation.
func (s *socket) passPrefix() string { return "pass-" + s.LocalAddr().String() + "-" }

// adopt takes over the connections to processes of older generations. The argument files contains
// the open files of these connections, which the previous process has passed on. Its keys are the
// names of the generations.
func (s *socket) adopt(files map[string]*os.File) {
	passes := map[generation]*net.UnixConn{}
	for name, f := range files {
		g, ok := parseGeneration(name)
		if c, err := net.FileConn(f); ok && err == nil {
			passes[g] = c.(*net.UnixConn)
		}
		f.Close()
	}
	if len(passes) > 0 {
		s.passes.Store(&passes)
	}
}

// offer returns the files with which the next process passes packets to this process and to older
// ones. The caller closes the files.
func (s *socket) offer() (files []*os.File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	_ = unix.SetsockoptInt(pair[1], unix.SOL_SOCKET, unix.SO_SNDBUF, passBuffer)
	near := os.NewFile(uintptr(pair[0]), "")
	defer near.Close()
	files = []*os.File{os.NewFile(uintptr(pair[1]), s.passPrefix()+s.own.String())}
	c, err := net.FileConn(near)
	if err != nil {
		files[0].Close()
		return nil, err
	}
	if s.offered != nil {
		s.offered.Close()
	}
	s.offered = c.(*net.UnixConn)
	if older := s.passes.Load(); older != nil {
		for g, c := range *older {
			if f, err := handover.Dup(c, s.passPrefix()+g.String()); err == nil {
				files = append(files, f)
			}
		}
	}
	return files, nil
}

// drain makes this process read its packets from the next process instead of the socket. The next
// process has received the files of the last offer.
func (s *socket) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offered == nil || s.closed {
		return
	}
	s.drained.Store(s.offered)
	s.offered = nil
	_ = s.UDPConn.SetReadDeadline(past) // wakes up the reader
}

var past = time.Unix(1, 0)

// ReadBatch reads packets of connections that this process carries, and not those of another
// process that shares the socket. quic-go calls it as a method of ipv4.PacketConn.
func (s *socket) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	for {
		if from := s.drained.Load(); from != nil {
			if n, err := s.receive(from, ms); n > 0 || err != nil {
				return n, err
			}
		}
		n, err := s.udpSocket.ReadBatch(ms, flags)
		if err != nil {
			if s.drained.Load() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			return n, err
		}
		if older := s.passes.Load(); older != nil {
			n = s.pass(ms[:n], *older)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// pass sends the packets of older generations to their processes. It moves the remaining packets to
// the front and returns their number.
func (s *socket) pass(ms []ipv4.Message, older map[generation]*net.UnixConn) (kept int) {
	for i := range ms {
		m := &ms[i]
		g := generationOf(m.Buffers[0][:m.N])
		if to := older[g]; to != nil && s.send(to, m) {
			continue
		} else if to != nil {
			s.forget(g)
		}
		if kept != i { // quic-go expects each buffer at its place, so the content moves
			into := &ms[kept]
			into.N, into.NN, into.Flags, into.Addr = copy(into.Buffers[0], m.Buffers[0][:m.N]), copy(into.OOB, m.OOB[:m.NN]), m.Flags, m.Addr
		}
		kept++
	}
	return kept
}

// send passes a packet to an older process. It returns false if that process is gone.
func (s *socket) send(to *net.UnixConn, m *ipv4.Message) bool {
	from := m.Addr.(*net.UDPAddr).AddrPort()
	b, err := from.AppendBinary(append(s.scratch[:0], 0, byte(m.NN)))
	if err != nil {
		return true
	}
	b[0] = byte(len(b) - 2)
	b = append(append(b, m.OOB[:m.NN]...), m.Buffers[0][:m.N]...)
	s.scratch = b[:0]
	raw, err := to.SyscallConn()
	if err != nil {
		return false
	}
	var failed error
	if err := raw.Write(func(fd uintptr) bool {
		failed = unix.Sendto(int(fd), b, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
		return true
	}); err != nil {
		return false
	}
	return !errors.Is(failed, unix.EPIPE) && !errors.Is(failed, unix.ECONNRESET)
}

// receive reads one packet that another process passed on with send. If that process is gone, this
// process reads the socket again, although it is about to end too.
func (s *socket) receive(from *net.UnixConn, ms []ipv4.Message) (int, error) {
	b := s.scratch[:cap(s.scratch)]
	for {
		n, err := from.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		if err != nil || n == 0 {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.drained.Store(nil)
			from.Close()
			return 0, s.UDPConn.SetReadDeadline(s.deadline)
		}
		if m := &ms[0]; unpack(b[:n], m) {
			return 1, nil
		}
	}
}

// unpack decodes a packet that was encoded by send. It returns false if the packet is malformed.
func unpack(b []byte, m *ipv4.Message) bool {
	if len(b) < 2 || len(b) < 2+int(b[0])+int(b[1]) {
		return false
	}
	var from netip.AddrPort
	addr, rest := b[2:2+int(b[0])], b[2+int(b[0]):]
	if err := from.UnmarshalBinary(addr); err != nil {
		return false
	}
	m.Addr, m.NN, m.N = net.UDPAddrFromAddrPort(from), copy(m.OOB, rest[:b[1]]), copy(m.Buffers[0], rest[b[1]:])
	return true
}

// forget removes the connection to an older process that is gone. This process then answers packets
// for the older one with stateless resets.
func (s *socket) forget(g generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.passes.Load()
	if now == nil || (*now)[g] == nil {
		return // already removed because of another packet of the same batch
	}
	older := maps.Clone(*now)
	older[g].Close()
	delete(older, g)
	if len(older) == 0 {
		s.passes.Store(nil)
	} else {
		s.passes.Store(&older)
	}
}

// SetReadDeadline sets the deadline for reading packets from their present source. This is the
// socket or, after a handover, the next process, which passes packets back.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	if from := s.drained.Load(); from != nil {
		return from.SetReadDeadline(t)
	}
	return s.UDPConn.SetReadDeadline(t)
}

// Close closes the socket and the connections to other processes.
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range []*net.UnixConn{s.offered, s.drained.Load()} {
		if c != nil {
			c.Close()
		}
	}
	if older := s.passes.Swap(nil); older != nil {
		for _, c := range *older {
			c.Close()
		}
	}
	return s.UDPConn.Close()
}
