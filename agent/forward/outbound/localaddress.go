package outbound

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/conns"
)

// A socket on all addresses of the host would answer from the address that the kernel prefers. A
// caller expects the answer from the address to which it sent. Linux tells and takes that address in
// control messages (ip(7), ipv6(7)).

// localSpace is the size in bytes of a buffer for such a control message.
var localSpace = unix.CmsgSpace(unix.SizeofInet6Pktinfo)

// receiveLocal makes a socket deliver the address to which each datagram was sent.
func receiveLocal(conn *net.UDPConn) error {
	level, option := unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO
	if conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Is4() {
		level, option = unix.IPPROTO_IP, unix.IP_PKTINFO
	}
	return conns.Control(conn, func(fd int) error { return unix.SetsockoptInt(fd, level, option, 1) })
}

// answerFrom returns the control message with which an answer is sent from the address to which a
// datagram was sent. The argument oob has the control messages of the datagram. If they do not name
// the address, answerFrom returns nil.
func answerFrom(oob []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			info := &unix.Inet6Pktinfo{Addr: [16]byte(m.Data)}
			if netip.AddrFrom16(info.Addr).IsLinkLocalUnicast() {
				info.Ifindex = binary.NativeEndian.Uint32(m.Data[16:])
			}
			return unix.PktInfo6(info)
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: [4]byte(m.Data[4:])})
		}
	}
	return nil
}
