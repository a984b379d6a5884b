package transport

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/net/ipv4"
)

// udpSocket is a UDP socket of QUIC. What cannot be sent for the moment is lost on the way, as
// what a router drops: without a route, quic-go would end all connections, and a host that
// changes networks has none for a while.
type udpSocket struct {
	*merging
	resets netip.AddrPort // of the socket that gets stateless resets too, if any
}

// resetSize is that of quic-go's stateless resets.
const resetSize = 42

func newUDPSocket(c *net.UDPConn) (udpSocket, error) {
	merged, err := newMerging(c)
	return udpSocket{merging: merged}, err
}

// listenUDP makes one of a port that the kernel chooses.
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

// unsendable are what the kernel returns for packets that it does not send, and might send
// later: no route (EINVAL where that is a blackhole), no address, a full queue, or a filter.
var unsendable = []syscall.Errno{
	syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EINVAL, syscall.EADDRNOTAVAIL,
	syscall.ENOBUFS, syscall.EPERM, syscall.EACCES,
}

// WriteMsgUDP shadows that of net.UDPConn.
func (s udpSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = s.merging.WriteMsgUDP(b, oob, to)
	var errno syscall.Errno
	if errors.As(err, &errno) && slices.Contains(unsendable, errno) {
		return len(b), len(oob), nil
	}
	return n, oobn, err
}

// passResets has another socket of this host get what may be stateless resets: quic-go looks for
// a connection's where it was made alone, and a peer that has started anew answers to where it
// has migrated.
func (s *udpSocket) passResets(to udpSocket) {
	s.resets = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), to.LocalAddr().(*net.UDPAddr).AddrPort().Port())
}

// ReadBatch shadows that of merging.
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
