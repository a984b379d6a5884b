package transport

import (
	"errors"
	"net"
	"slices"
	"syscall"

	"github.com/florete/florete/agent/forward/gro"
)

// udpSocket is a UDP socket of QUIC. What cannot be sent for the moment is lost on the way, as
// what a router drops: without a route, quic-go would end all connections, and a host that
// changes networks has none for a while.
type udpSocket struct{ *gro.Conn }

func newUDPSocket(c *net.UDPConn) (udpSocket, error) {
	merged, err := gro.New(c)
	return udpSocket{merged}, err
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
	n, oobn, err = s.Conn.WriteMsgUDP(b, oob, to)
	var errno syscall.Errno
	if errors.As(err, &errno) && slices.Contains(unsendable, errno) {
		return len(b), len(oob), nil
	}
	return n, oobn, err
}
