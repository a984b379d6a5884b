package wire

import (
	"fmt"
	"io"
	"net/netip"
)

// Meeting tells a host the addresses that it needs to connect directly to another host, as a relay
// sees them. They may differ from the hosts' own addresses, because a NAT in front of a host
// changes its address.
type Meeting struct {
	Peer netip.AddrPort // address of the other host; zero if the meeting has none
	Own  netip.AddrPort // address of the host that receives the meeting
}

// MeetingLen is the length in bytes of an encoded Meeting.
const MeetingLen = 2 * addressLen

const addressLen = 18

// A host sends MayMeet or MayNotMeet to its relay, on a unidirectional stream of its uplink. They
// say whether the relay may tell other hosts its address.
const (
	MayNotMeet byte = 0
	MayMeet    byte = 1
)

// Meetings is the first byte of the unidirectional stream on which a relay sends meetings to a
// host.
const Meetings byte = 2

// Append appends the encoded meeting to b. Each address is encoded as 16 bytes of IPv6 and a port
// in big endian. An IPv4 address has the mapped form (RFC 4291, section 2.5.5.2). ReadMeeting is
// the inverse of Append.
func (m Meeting) Append(b []byte) []byte {
	for _, at := range []netip.AddrPort{m.Peer, m.Own} {
		var ip [16]byte
		if at.IsValid() {
			ip = at.Addr().As16()
		}
		b = append(b, ip[:]...)
		b = append(b, byte(at.Port()>>8), byte(at.Port()))
	}
	return b
}

// ReadMeeting reads one meeting, and no further bytes.
func ReadMeeting(r io.Reader) (m Meeting, err error) {
	var b [MeetingLen]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return m, fmt.Errorf("meeting: %w", err)
	}
	return Meeting{Peer: address(b[:addressLen]), Own: address(b[addressLen:])}, nil
}

// address decodes an address of a meeting. It returns the zero AddrPort if the port is 0.
func address(b []byte) netip.AddrPort {
	port := uint16(b[16])<<8 | uint16(b[17])
	if port == 0 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)).Unmap(), port)
}
