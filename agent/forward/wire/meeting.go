package wire

import (
	"fmt"
	"io"
	"net/netip"
)

// Meeting is a message with which a relay introduces two hosts to each other, so that they can
// connect directly. It tells one of the hosts the addresses of both, as the relay sees them. The
// address of a host behind a NAT is an address of the NAT.
type Meeting struct {
	Peer netip.AddrPort // address of the other host; zero if only Own is told
	Own  netip.AddrPort // address of the host that receives the message
}

// MeetingLen is the length of an encoded Meeting.
const MeetingLen = 2 * addressLen

const addressLen = 18

// MayMeet and MayNotMeet are the bytes with which a host tells a relay whether callers may learn
// its address. The host sends them on a unidirectional stream of its uplink.
const (
	MayNotMeet byte = 0
	MayMeet    byte = 1
)

// Meetings is the first byte of the relay's unidirectional stream on which Meetings follow.
const Meetings byte = 2

// Append appends the encoded meeting to b. Each of its two addresses consists of 16 bytes for the
// IPv6 address and 2 bytes for the port, in big-endian order. An IPv4 address is encoded in its
// mapped form (RFC 4291, section 2.5.5.2). ReadMeeting is the inverse.
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

// ReadMeeting reads one encoded meeting from r, and no byte after it.
func ReadMeeting(r io.Reader) (m Meeting, err error) {
	var b [MeetingLen]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return m, fmt.Errorf("meeting: %w", err)
	}
	return Meeting{Peer: address(b[:addressLen]), Own: address(b[addressLen:])}, nil
}

// address decodes an address. It returns the zero AddrPort if the port is 0.
func address(b []byte) netip.AddrPort {
	port := uint16(b[16])<<8 | uint16(b[17])
	if port == 0 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)).Unmap(), port)
}
