package transport

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/net/ipv4"
)

// udpSocket is a UDP socket for QUIC. A packet that cannot be sent at the moment is treated as
// lost. Otherwise quic-go would end all connections when there is no route, for example while the
// host changes networks.
type udpSocket struct {
	*merging
	resets netip.AddrPort // address of the socket that also receives stateless resets, if any
}

// resetSize is the size of quic-go's stateless resets.
const resetSize = 42

func newUDPSocket(c *net.UDPConn) (udpSocket, error) {
	merged, err := newMerging(c)
	return udpSocket{merging: merged}, err
}

// listenUDP returns a socket with a port chosen by the kernel.
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

// unsendable lists errors for packets that the kernel does not send but may send later: no route
// (EINVAL for a blackhole route), no address, a full queue, or a filter.
var unsendable = []syscall.Errno{
	syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EINVAL, syscall.EADDRNOTAVAIL,
	syscall.ENOBUFS, syscall.EPERM, syscall.EACCES,
}

// WriteMsgUDP treats unsendable packets as sent.
func (s udpSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = s.merging.WriteMsgUDP(b, oob, to)
	var errno syscall.Errno
	if errors.As(err, &errno) && slices.Contains(unsendable, errno) {
		return len(b), len(oob), nil
	}
	return n, oobn, err
}

// passResets passes packets that may be stateless resets to another socket of this host. quic-go
// looks for the connection of a reset only at the socket over which it was made, but a restarted
// peer sends the reset to the socket to which the connection has migrated.
func (s *udpSocket) passResets(to udpSocket) {
	s.resets = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), to.LocalAddr().(*net.UDPAddr).AddrPort().Port())
}

// ReadBatch also passes possible stateless resets to the other socket.
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
