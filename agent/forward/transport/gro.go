package transport

import (
	"encoding/binary"
	"net"
	"runtime"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

const (
	// pieces are how many are received with one system call.
	pieces = 8
	// largestMerged is the most that the kernel merges, in bytes.
	largestMerged = 1 << 16
	// controlSize has room for the size of a segment, ECN and the address that was called.
	controlSize = 128
)

// merging is a UDP socket at which the kernel merges datagrams that are received (UDP_GRO, udp(7)).
// What one sender sends at once comes with one system call, and through the network stack in one
// piece: without it, receiving is half of the cost of bulk data. quic-go has no such thing, but it reads from
// whatever has ReadBatch, which one goroutine at a time may call and which returns what was sent. Other ways of
// reading return what was merged.
type merging struct {
	*net.UDPConn
	batch    *ipv4.PacketConn // of IPv6 too
	received []ipv4.Message
	next     []ipv4.Message // of received, not returned
	offset   int            // of the first one of them
	segment  int            // size of what it was merged from, all but the last one
}

// newMerging has a socket merge. One of a kernel that cannot works all the same.
func newMerging(c *net.UDPConn) (*merging, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1) }); err != nil {
		return nil, err
	}
	g := &merging{UDPConn: c, batch: ipv4.NewPacketConn(c), received: make([]ipv4.Message, pieces)}
	for i := range g.received {
		g.received[i] = ipv4.Message{Buffers: [][]byte{make([]byte, largestMerged)}, OOB: make([]byte, controlSize)}
	}
	return g, nil
}

// ReadBatch fills messages with datagrams and what the kernel reports of each. It waits until
// there is one.
func (c *merging) ReadBatch(messages []ipv4.Message, flags int) (n int, err error) {
	for len(c.next) == 0 {
		// Who handles datagrams has a queue of 256: what does not fit is lost.
		runtime.Gosched()
		got, err := c.batch.ReadBatch(c.received, flags)
		if err != nil {
			return 0, err
		}
		c.next = c.received[:got]
		c.begin()
	}
	for n < len(messages) && len(c.next) > 0 {
		c.take(&messages[n])
		n++
	}
	return n, nil
}

// take returns the next datagram. Its bytes are copied: QUIC keeps them.
func (c *merging) take(m *ipv4.Message) {
	from := &c.next[0]
	rest := from.Buffers[0][c.offset:from.N]
	one := rest[:min(len(rest), c.segment)]
	m.N = copy(m.Buffers[0], one)
	m.NN = copy(m.OOB, from.OOB[:from.NN])
	m.Flags, m.Addr = from.Flags, from.Addr
	c.offset += len(one)
	if c.offset >= from.N {
		c.next = c.next[1:]
		c.begin()
	}
}

// begin prepares for the first of next.
func (c *merging) begin() {
	c.offset = 0
	if len(c.next) > 0 {
		c.segment = segment(c.next[0])
	}
}

// segment is the size of the datagrams that a message was merged from.
func segment(m ipv4.Message) int {
	for oob := m.OOB[:m.NN]; len(oob) > 0; {
		header, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			break
		}
		if header.Level == unix.IPPROTO_UDP && header.Type == unix.UDP_GRO && len(data) >= 4 {
			return max(1, int(binary.NativeEndian.Uint32(data)))
		}
		oob = rest
	}
	return max(1, m.N)
}
