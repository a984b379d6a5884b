package inbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// listenAt describes where peers reach this host: at an address over a transport, or through a
// relay.
type listenAt struct {
	transport document.Transport
	addr      string
	relay     spiffe.ID // zero if peers connect to an address
	addresses string    // addresses of the relay
	meets     bool      // the relay may tell callers this host's address
}

func listenAts(f document.Forwarder) (all []listenAt) {
	for _, t := range []document.Transport{document.OverQUIC, document.OverTCP} {
		if f.Transport != document.AnyTransport && f.Transport != t {
			continue
		}
		for _, addr := range f.Listen {
			all = append(all, listenAt{transport: t, addr: addr})
		}
	}
	for _, name := range f.Uplinks {
		r := f.Relays[name]
		all = append(all, listenAt{transport: cmp.Or(r.Transport, f.Transport), relay: r.ID, addresses: strings.Join(r.Addresses, " "), meets: f.Meet})
	}
	return all
}

// listener accepts connections of peers. With this interface, the server treats a
// transport.Listener, a transport.TCPListener and a transport.Uplink alike.
type listener interface {
	Accept() (*transport.Incoming, error)
	Offer() ([]*os.File, error)
	Drain()
	Stop()
	Close()
}

// listen opens and closes listeners until exactly those in the list at are open. A listener that
// fails does not delay the others.
func (s *Server) listen(at []listenAt) (errs []error) {
	s.close(func(l listenAt) bool { return !slices.Contains(at, l) }, 0)
	s.share()
	if s.Sockets != nil {
		errs = s.retain(at)
	}
	for _, l := range at {
		if s.running[l] != nil {
			continue
		}
		ln, err := s.bind(l)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.running[l] = s.start(ln)
		s.share()
	}
	return errs
}

// close closes all listeners that the function which selects, at the same time. It closes sockets
// after the uplinks that were dialled from them.
func (s *Server) close(which func(listenAt) bool, grace time.Duration) {
	var uplinks, sockets []*running
	for l, r := range s.running {
		switch {
		case !which(l):
			continue
		case l.relay.IsZero():
			sockets = append(sockets, r)
		default:
			uplinks = append(uplinks, r)
		}
		delete(s.running, l)
	}
	each(slices.Concat(uplinks, sockets), func(r *running) { r.finish(grace) })
	each(uplinks, (*running).close)
	each(sockets, (*running).close)
}

// each calls the function f for all listeners at the same time, and waits for the calls to return.
func each(all []*running, f func(*running)) {
	var calls sync.WaitGroup
	for _, r := range all {
		calls.Go(func() { f(r) })
	}
	calls.Wait()
}

func (s *Server) bind(l listenAt) (listener, error) {
	t := transport.Server{
		Addr:       l.addr,
		Lookup:     func(sni string) (spiffe.ID, bool) { return s.rules.Load().registry.Lookup(sni) },
		Identities: s.Identities,
		Rejected:   s.rejected,
		ResetKey:   s.ResetKey,
	}
	if s.Sockets != nil {
		t.Bind, t.BindTCP, t.Inherited = s.Sockets.ListenQUIC, s.Sockets.ListenTLS, s.Sockets.Others
	}
	if !l.relay.IsZero() {
		relay, err := spiffe.Dial(l.relay)
		if err != nil {
			return nil, fmt.Errorf("uplink: %w", err)
		}
		return t.Uplink(transport.UplinkTo{
			Relay: relay, Addresses: strings.Fields(l.addresses), Node: s.Node, Transport: l.transport, Dial: s.dialQUIC,
			Meets: l.meets, Outside: &s.outside,
		}), nil
	}
	if l.transport == document.OverTCP {
		return t.ListenTCP()
	}
	return t.Listen()
}

// retain releases the sockets of all addresses that are not in the list all.
func (s *Server) retain(all []listenAt) (errs []error) {
	var quic, tcp []netip.AddrPort
	for _, l := range all {
		if !l.relay.IsZero() {
			continue
		}
		at, err := net.ResolveUDPAddr("udp", l.addr)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("forwarder listen %q: %w", l.addr, err))
		case l.transport == document.OverTCP:
			tcp = append(tcp, at.AddrPort())
		default:
			quic = append(quic, at.AddrPort())
		}
	}
	s.Sockets.RetainForPeers(quic, tcp)
	return errs
}

// dialQUIC makes a QUIC connection to a relay. It uses a socket on which this host listens, and
// returns the listener of that socket. If no such socket reaches the relay, it uses a new socket
// and returns a nil listener.
func (s *Server) dialQUIC(ctx context.Context, to *net.UDPAddr, conf *tls.Config, q *quic.Config) (*quic.Conn, *transport.Listener, error) {
	if all := s.sockets.Load(); all != nil {
		for _, l := range *all {
			if l.Reaches(to) {
				c, err := l.Dial(ctx, to, conf, q)
				return c, l, err
			}
		}
	}
	c, err := quic.DialAddr(ctx, to.String(), conf, q)
	return c, nil, err
}

// share makes the current QUIC listeners available to dialQUIC, and the current uplinks to Uplinks.
func (s *Server) share() {
	sockets, uplinks := []*transport.Listener{}, []*transport.Uplink{}
	for _, r := range s.running {
		switch l := r.ln.(type) {
		case *transport.Listener:
			sockets = append(sockets, l)
		case *transport.Uplink:
			uplinks = append(uplinks, l)
		}
	}
	s.sockets.Store(&sockets)
	s.uplinks.Store(&uplinks)
}

// Uplinks returns the state of the connections that this host keeps open to its relays, sorted by
// relay. Other hosts reach this host through these connections.
func (s *Server) Uplinks() (all []transport.UplinkState) {
	if uplinks := s.uplinks.Load(); uplinks != nil {
		for _, u := range *uplinks {
			all = append(all, u.State())
		}
	}
	slices.SortFunc(all, func(a, b transport.UplinkState) int { return strings.Compare(a.Relay.String(), b.Relay.String()) })
	return all
}

// NAT returns the kind of NAT in front of this host, as its relays observe it.
func (s *Server) NAT() transport.NAT { return s.outside.NAT() }
