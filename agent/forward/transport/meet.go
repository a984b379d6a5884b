package transport

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/spiffe"
)

// meetings is the relay's side of the streams by which the host of an uplink learns addresses.
type meetings struct {
	conn *quic.Conn

	mu   sync.Mutex
	may  bool             // the host may be met
	tell *quic.SendStream // nil until the host asks to be told
}

// tellTimeout is the time that a host has to read what it is told.
const tellTimeout = time.Second

// serve reads whether the host may be met, until its connection ends.
func (m *meetings) serve() {
	in, err := m.conn.AcceptUniStream(m.conn.Context())
	if err != nil {
		return
	}
	out, err := m.conn.OpenUniStream()
	if err != nil {
		return
	}
	first := wire.Meeting{Own: outsideOf(m.conn)}.Append([]byte{wire.Meetings})
	if !write(out, first) {
		return
	}
	m.mu.Lock()
	m.tell = out
	m.mu.Unlock()
	for b := make([]byte, 64); ; {
		n, err := in.Read(b)
		m.mu.Lock()
		if n > 0 {
			m.may = b[n-1] == wire.MayMeet
		}
		if err != nil {
			m.may = false
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
	}
}

// write writes all bytes, or ends the stream if the peer does not read them.
func write(to *quic.SendStream, b []byte) bool {
	_ = to.SetWriteDeadline(time.Now().Add(tellTimeout))
	if _, err := to.Write(b); err != nil {
		to.CancelWrite(quic.StreamErrorCode(wire.Reset))
		return false
	}
	return true
}

// Meet tells the host of an uplink about a caller, and returns the host's address as it is seen from
// here. It returns false if the host must not be met, or not by this caller.
func (in *Incoming) Meet(caller netip.AddrPort) (netip.AddrPort, bool) {
	m := in.meetings
	if m == nil {
		return netip.AddrPort{}, false
	}
	own := outsideOf(m.conn)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.may || m.tell == nil || own.Addr().Is4() != caller.Addr().Is4() {
		return netip.AddrPort{}, false
	}
	if !write(m.tell, wire.Meeting{Peer: caller, Own: own}.Append(nil)) {
		m.tell = nil
		return netip.AddrPort{}, false
	}
	return own, true
}

// Outside returns the address of a peer as it is seen from here. It returns false if the peer uses
// TCP, whose addresses are of no use to UDP.
func (in *Incoming) Outside() (netip.AddrPort, bool) {
	c, ok := in.conn.(quicConn)
	if !ok {
		return netip.AddrPort{}, false
	}
	return outsideOf(c.Conn), true
}

func outsideOf(c *quic.Conn) netip.AddrPort {
	return unmapped(c.RemoteAddr().(*net.UDPAddr).AddrPort())
}

func unmapped(at netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// NAT describes how the addresses of a socket are translated between this host and relays.
type NAT string

const (
	NATUnknown NAT = ""
	// NoNAT means that a relay sees the host's own address.
	NoNAT NAT = "none"
	// SameNAT means that two relays see the same address (endpoint-independent mapping, RFC 4787,
	// section 4.1), so that others can reach the host by it.
	SameNAT NAT = "same"
	// OtherNAT means that two relays see different addresses (a symmetric NAT). Other hosts would see
	// yet another one, which nobody can know.
	OtherNAT NAT = "other"
	// SomeNAT means that a NAT is used, of which only one relay has been seen.
	SomeNAT NAT = "some"
)

// Outside collects the addresses by which relays see a socket of this host. The zero Outside is ready
// for use.
type Outside struct {
	mu   sync.Mutex
	seen map[spiffe.ID]seenAt // by relay
}

type seenAt struct {
	own, outside netip.AddrPort
	over         *quic.Conn
}

// see records that a relay sees the socket at own as outside, until the connection ends over which
// it has told so.
func (o *Outside) see(relay spiffe.ID, own, outside netip.AddrPort, over *quic.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[spiffe.ID]seenAt{}
	}
	if o.seen[relay].over != over {
		context.AfterFunc(over.Context(), func() { o.forget(relay, over) })
	}
	o.seen[relay] = seenAt{unmapped(own), unmapped(outside), over}
}

func (o *Outside) forget(relay spiffe.ID, over *quic.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[relay].over == over {
		delete(o.seen, relay)
	}
}

// NAT returns the kind of NAT. Where sockets or versions of IP differ, one that is symmetric
// decides.
func (o *Outside) NAT() NAT {
	o.mu.Lock()
	defer o.mu.Unlock()
	kind := NATUnknown
	for a, x := range o.seen {
		if x.own == x.outside {
			if kind == NATUnknown {
				kind = NoNAT
			}
			continue
		}
		if kind != SameNAT {
			kind = SomeNAT
		}
		for b, y := range o.seen {
			switch {
			case a == b || x.own != y.own || y.own == y.outside:
			case x.outside != y.outside:
				return OtherNAT
			default:
				kind = SameNAT
			}
		}
	}
	return kind
}

// mayMeet reports whether a relay may name an address to this host. A relay that lies must not make
// hosts send to what is near them: an address that is not public is only used if the relay's is of the
// same kind.
func mayMeet(at, relay netip.AddrPort) bool {
	a, r := at.Addr().Unmap(), relay.Addr().Unmap()
	switch {
	case !a.IsValid() || at.Port() == 0 || a.Zone() != "" || a.Is4() != r.Is4():
		return false
	case a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return false
	case a.IsLoopback():
		return r.IsLoopback()
	case a.IsLinkLocalUnicast():
		return r.IsLinkLocalUnicast()
	case a.IsPrivate() || sharedSpace.Contains(a):
		return r.IsPrivate() || sharedSpace.Contains(r)
	}
	return true
}

// sharedSpace is used between carriers and their customers (RFC 6598).
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")
