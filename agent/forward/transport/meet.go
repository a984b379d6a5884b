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

// meetings is the relay's side of the introduction of callers to the host of an uplink. The relay
// tells the host the address of each caller that wants to connect directly.
type meetings struct {
	conn *quic.Conn

	mu   sync.Mutex
	may  bool             // the relay may tell the host's address to callers
	tell *quic.SendStream // stream to the host; nil until the host asks for it
}

// tellTimeout is the time within which a peer must read the bytes that write sends.
const tellTimeout = time.Second

// serve opens the stream to the host when the host asks for it, and tells the host its own outside
// address. Until the connection ends, it then reads from the host if callers may learn this
// address.
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

// write writes bytes to a stream, and reports whether it succeeded. If the write fails or takes
// longer than tellTimeout, write resets the stream.
func write(to *quic.SendStream, b []byte) bool {
	_ = to.SetWriteDeadline(time.Now().Add(tellTimeout))
	if _, err := to.Write(b); err != nil {
		to.CancelWrite(quic.StreamErrorCode(wire.Reset))
		return false
	}
	return true
}

// Meet helps a caller to connect directly to the host that is reached over this uplink. It tells
// the host the address of the caller, and returns the address of the host as this relay sees it. It
// returns false if the host does not permit this or cannot be told, or if one address is IPv4 and
// the other is IPv6.
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

// Outside returns the address of the peer as this host sees it. If the peer is behind a NAT, this
// is an address of the NAT. Outside returns false for a connection over TCP, because direct
// connections need a UDP address.
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

// NAT is the kind of network address translation between a socket of this host and its relays. It
// says whether other hosts can connect to the socket directly.
type NAT string

const (
	// NATUnknown means that no relay has told this host its address.
	NATUnknown NAT = ""
	// NoNAT means that a relay sees the host's own address.
	NoNAT NAT = "none"
	// SameNAT means that two relays see the same address, so that other hosts can connect to it
	// (endpoint-independent mapping, RFC 4787, section 4.1).
	SameNAT NAT = "same"
	// OtherNAT means that two relays see different addresses (a symmetric NAT). Another host would
	// see a third address, which nobody can know in advance, so a direct connection is not
	// possible.
	OtherNAT NAT = "other"
	// SomeNAT means that there is a NAT. Its kind is unknown, because only one relay sees it.
	SomeNAT NAT = "some"
)

// Outside finds out which kind of NAT is in front of this host. For that, it collects the addresses
// at which relays see the sockets of this host. The zero Outside is ready for use. An Outside is
// safe for concurrent use.
type Outside struct {
	mu   sync.Mutex
	seen map[spiffe.ID]seenAt // by relay
}

// seenAt is the observation of one relay.
type seenAt struct {
	own, outside netip.AddrPort // address of the socket on this host, and as the relay sees it
	over         *quic.Conn     // connection over which the relay told it
}

// see records the address at which a relay sees a socket of this host. The argument own is the
// local address of the socket, and the argument outside is the address that the relay sees. The
// argument over is the connection on which the relay reported this. The record is removed when this
// connection ends.
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

// NAT returns the kind of NAT that the relays together observe. If any socket of this host is
// behind a symmetric NAT, over IPv4 or IPv6, NAT returns OtherNAT.
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

// mayMeet reports whether this host may send packets to an address that a relay has reported. A
// relay that lies must not make a host send packets into the host's own network. An address that is
// not public is therefore used only if the relay's own address is of the same kind. The arguments
// are the reported address (at) and the address of the relay.
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

// sharedSpace is the shared address space of carrier-grade NATs (RFC 6598).
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")
