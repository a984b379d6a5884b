package transport

import (
	"encoding/binary"
	"net"
	"runtime"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/conns"
)

const (
	// pieces is the number of merged datagrams received with one system call.
	pieces = 8
	// largestMerged is the maximum size in bytes of a merged datagram.
	largestMerged = 1 << 16
	// controlSize is the number of bytes for the control messages of a datagram: segment size, ECN,
	// and destination address.
	controlSize = 128
)

// merging is a UDP socket that receives several datagrams with one system call. The kernel merges
// datagrams that one sender sends together, so that they pass through the network stack as one
// (UDP_GRO, udp(7)). Without merging, receiving would be half the cost of bulk transfers.
//
// quic-go does not support UDP_GRO, but it reads through ReadBatch where that method exists.
// ReadBatch returns the original datagrams; only one goroutine may call it at a time. All other
// read methods return merged datagrams.
type merging struct {
	*net.UDPConn
	batch    *ipv4.PacketConn // works for IPv6 too
	received []ipv4.Message
	next     []ipv4.Message // messages in received that ReadBatch has not returned yet
	offset   int            // offset in the first message of next
	segment  int            // size of each original datagram except the last, which may be smaller
}

// newMerging enables merging for a socket. If the kernel does not support merging, the socket works
// without it.
func newMerging(c *net.UDPConn) (*merging, error) {
	if err := conns.Control(c, func(fd int) error {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
		return nil
	}); err != nil {
		return nil, err
	}
	g := &merging{UDPConn: c, batch: ipv4.NewPacketConn(c), received: make([]ipv4.Message, pieces)}
	for i := range g.received {
		g.received[i] = ipv4.Message{Buffers: [][]byte{make([]byte, largestMerged)}, OOB: make([]byte, controlSize)}
	}
	return g, nil
}

// ReadBatch waits for at least one datagram, and fills messages with datagrams and their control
// messages. It returns the number of messages that it has filled.
func (c *merging) ReadBatch(messages []ipv4.Message, flags int) (n int, err error) {
	for len(c.next) == 0 {
		// Let quic-go handle earlier datagrams first: its queue holds 256 and drops further ones.
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

// take copies the next original datagram to a message. A copy is needed because QUIC keeps the
// buffer.
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

// begin prepares for splitting the first message of next.
func (c *merging) begin() {
	c.offset = 0
	if len(c.next) > 0 {
		c.segment = segment(c.next[0])
	}
}

// segment returns the size of the original datagrams in a merged message.
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
