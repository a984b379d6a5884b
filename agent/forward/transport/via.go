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

// Relayed is the transport of connections through relays. It is not a value of documents.
const Relayed document.Transport = "relay"

// Via is a path through one or two relays to a forwarder that publishes a target. To the first relay
// the node of this host connects, like a caller to a service. Inside, the target's forwarder is
// reached as over TCP.
type Via struct {
	Relays     []string           // names of their hosts, in order
	Node       spiffe.ID          // of this host
	Relay      spiffe.Dialable    // first relay
	Addresses  document.Addresses // of the first relay
	Label      string             // of the route at the first relay
	ServerName string             // SNI that names the target to its forwarder and to nobody else
	Meet       bool               // the relay may be asked for the target's address
}

// String identifies the path among those of a target.
func (v *Via) String() string {
	if v == nil {
		return ""
	}
	return "by " + strings.Join(v.Relays, ", ")
}

// serverName returns the SNI of connections to the target.
func (to destination) serverName() string {
	if via := to.endpoint.via; via != nil {
		return via.ServerName
	}
	return spiffe.SNI(to.route.Target)
}

// dialVia makes a connection through relays.
func (p *Pool) dialVia(ctx context.Context, to destination) (*conn, error) {
	to.address = to.endpoint.via.String()
	return p.dialLink(ctx, to, Relayed, func(ctx context.Context) (*tcpstream.Socket, *conn, error) {
		return p.through(ctx, to.endpoint.via)
	})
}

// through opens a stream through a relay. The relay's answer is read with the first bytes from the
// other side.
func (p *Pool) through(ctx context.Context, via *Via) (*tcpstream.Socket, *conn, error) {
	st, err := p.OpenRelayed(ctx, via.Node, via.Relay, via.Addresses, via.Label)
	if err != nil {
		return nil, nil, fmt.Errorf("relay: %w", err)
	}
	source := net.UDPAddrFromAddrPort(netip.AddrPortFrom(st.conn.source, 0))
	return tcpstream.NewRelayed(&unanswered{Stream: st}, source, net.UDPAddrFromAddrPort(st.conn.at), st.Release), st.conn, nil
}

// unanswered is a stream whose answer is read when its first bytes are, so that a handshake through
// a relay begins without waiting for the relay.
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

// OpenRelayed opens a stream to a relay for the route with a label. Its answer must be awaited as
// that of other streams.
func (p *Pool) OpenRelayed(ctx context.Context, caller spiffe.ID, relay spiffe.Dialable, at document.Addresses, label string) (*Stream, error) {
	return p.open(ctx, toRelay(caller, relay, at), wire.AppendLabel(nil, label))
}

func toRelay(caller spiffe.ID, relay spiffe.Dialable, at document.Addresses) Route {
	return Route{Caller: caller, Target: relay, Endpoints: []document.Addresses{at}}
}
