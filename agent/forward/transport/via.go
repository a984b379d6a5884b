package transport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/florete/florete/agent/forward/tcpstream"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// Relayed is the transport of connections through relays, as status and logs show it. Documents do
// not contain it.
const Relayed document.Transport = "relay"

// Via is a path through one or two relays to a forwarder that publishes a target. This host's node
// connects to the first relay as a caller connects to a service. Inside that connection, it
// connects to the target's forwarder as over TCP.
type Via struct {
	Relays     []string // names of the relays' hosts, in order
	Relay      Route    // from the node of this host to the first relay
	Label      string   // label of the route at the first relay
	ServerName string   // SNI that only the target's forwarder can interpret
	Meet       bool     // this host may ask the relay for the target's address
}

// String returns the name of the path, such as "by gate, gate2", which is unique among the paths to
// one target. It returns an empty string for a nil Via.
func (v *Via) String() string {
	if v == nil {
		return ""
	}
	return "by " + strings.Join(v.Relays, ", ")
}

// serverName returns the SNI that is sent to the target's forwarder.
func (to destination) serverName() string {
	if via := to.endpoint.via; via != nil {
		return via.ServerName
	}
	return spiffe.SNI(to.route.Target)
}

// dialVia connects to a target through relays.
func (p *Pool) dialVia(ctx context.Context, to destination) (*conn, error) {
	to.address = to.endpoint.via.String()
	return p.dialLink(ctx, to, Relayed, func(ctx context.Context) (*tcpstream.Socket, *conn, error) {
		return p.through(ctx, to.endpoint.via)
	})
}

// through opens a stream through a relay to the target's forwarder. It does not wait for the
// relay's answer, which is read with the first bytes from the forwarder.
func (p *Pool) through(ctx context.Context, via *Via) (*tcpstream.Socket, *conn, error) {
	st, err := p.OpenRelayed(ctx, via.Relay, via.Label)
	if err != nil {
		return nil, nil, fmt.Errorf("relay: %w", err)
	}
	source := net.UDPAddrFromAddrPort(netip.AddrPortFrom(st.conn.source, 0))
	return tcpstream.NewRelayed(&unanswered{Stream: st}, source, net.UDPAddrFromAddrPort(st.conn.at), st.Release), st.conn, nil
}

// unanswered is a stream to a relay whose answer was not read yet. The answer is read together with
// the first bytes, so that a handshake through the relay can begin before the relay has answered.
type unanswered struct {
	*Stream
	once sync.Once
	err  error
}

func (s *unanswered) Peek(b []byte) (int, error) {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
		defer cancel()
		s.err = s.Answer(ctx)
	})
	if s.err != nil {
		return 0, s.err
	}
	return s.Stream.Peek(b)
}

// OpenRelayed opens a stream through a relay. The label names a route at the relay, which the
// stream follows. As with Open, the caller must call Answer to learn whether the stream was
// accepted, and Release at the end.
func (p *Pool) OpenRelayed(ctx context.Context, relay Route, label string) (*Stream, error) {
	return p.open(ctx, relay, wire.AppendLabel(nil, label))
}

// ToRelay returns the route from a caller, which is a node or another relay, to a relay. The
// parameter target is the SPIFFE ID of the relay, and relay says how to connect to it.
func ToRelay(caller spiffe.ID, target spiffe.Dialable, relay document.Relay) Route {
	return Route{Caller: caller, Target: target, Endpoints: []document.Addresses{relay.Addresses}, Transport: relay.Transport}
}
