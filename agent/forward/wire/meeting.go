package wire

import (
	"fmt"
	"io"
	"net/netip"
)

// Meeting tells a host by which addresses it and another one are seen from a relay. A NAT in front
// of a host changes its address.
type Meeting struct {
	Peer netip.AddrPort // address of the other host; zero if only Own is told
	Own  netip.AddrPort // address of the host that is told
}

// MeetingLen is the length of an encoded Meeting.
const MeetingLen = 2 * addressLen

const addressLen = 18

// MayMeet and MayNotMeet are sent by a host on a unidirectional stream of its uplink.
const (
	MayNotMeet byte = 0
	MayMeet    byte = 1
)

// Meetings is the first byte of the relay's unidirectional stream on which Meetings follow.
const Meetings byte = 2

// Append appends the encoded meeting to b: for each address, its 16 bytes as IPv6, an IPv4 address in
// the mapped form (RFC 4291, section 2.5.5.2), and the port, big endian. ReadMeeting is its inverse.
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

// ReadMeeting reads exactly one meeting.
func ReadMeeting(r io.Reader) (m Meeting, err error) {
	var b [MeetingLen]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return m, fmt.Errorf("meeting: %w", err)
	}
	return Meeting{Peer: address(b[:addressLen]), Own: address(b[addressLen:])}, nil
}

// address decodes an address. One with port 0 is zero.
func address(b []byte) netip.AddrPort {
	port := uint16(b[16])<<8 | uint16(b[17])
	if port == 0 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)).Unmap(), port)
}
