package transport

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/net/ipv4"
)

// udpSocket is a UDP socket for QUIC that treats a packet as lost if the kernel cannot send it at
// the moment. Otherwise quic-go would end all connections while there is no route, for example when
// the host changes networks.
type udpSocket struct {
	*merging
	resets netip.AddrPort // other socket that gets possible stateless resets; invalid for none
}

// resetSize is the size in bytes of the stateless resets that quic-go sends.
const resetSize = 42

func newUDPSocket(c *net.UDPConn) (udpSocket, error) {
	merged, err := newMerging(c)
	return udpSocket{merging: merged}, err
}

// listenUDP returns a UDP socket on a port that the kernel chooses.
func listenUDP() (udpSocket, error) {
	c, err := net.ListenUDP("udp", nil)
	if err != nil {
		return udpSocket{}, err
	}
	s, err := newUDPSocket(c)
	if err != nil {
		c.Close()
	}
	return s, err
}

// unsendable lists errors for packets that the kernel cannot send now but may send later. Their
// causes are a missing route (EINVAL for a blackhole route), a missing address, a full queue, or a
// filter.
var unsendable = []syscall.Errno{
	syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EINVAL, syscall.EADDRNOTAVAIL,
	syscall.ENOBUFS, syscall.EPERM, syscall.EACCES,
}

// WriteMsgUDP sends a packet. If the kernel cannot send the packet at the moment, WriteMsgUDP drops
// it and returns no error, because quic-go would end the connection after an error.
func (s udpSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = s.merging.WriteMsgUDP(b, oob, to)
	var errno syscall.Errno
	if errors.As(err, &errno) && slices.Contains(unsendable, errno) {
		return len(b), len(oob), nil
	}
	return n, oobn, err
}

// passResets makes the socket pass packets that may be stateless resets to another socket of this
// process. quic-go looks for the connection of a reset only at the socket over which the connection
// was made. A restarted peer, however, sends the reset to the socket to which the connection has
// migrated.
func (s *udpSocket) passResets(to udpSocket) {
	s.resets = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), to.LocalAddr().(*net.UDPAddr).AddrPort().Port())
}

// ReadBatch reads packets, as merging.ReadBatch does. A packet that may be a stateless reset is
// also passed to the other socket.
func (s udpSocket) ReadBatch(messages []ipv4.Message, flags int) (int, error) {
	n, err := s.merging.ReadBatch(messages, flags)
	if s.resets.IsValid() {
		for _, m := range messages[:n] {
			if m.N == resetSize {
				_, _ = s.WriteToUDPAddrPort(m.Buffers[0][:m.N], s.resets)
			}
		}
	}
	return n, err
}
