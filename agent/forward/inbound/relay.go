package inbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

const (
	// uplinkWait is the time for which a caller waits for the uplink of a host. The host needs it
	// to connect again after it has lost its connection or after this relay has started.
	uplinkWait = 3 * time.Second
	// streamsPerNode is the maximum number of streams of one caller.
	streamsPerNode = 4096
)

// Relay carries streams between other hosts that cannot reach each other, for example because of
// NAT. A host connects to the relay and keeps this connection open, which is called an uplink. The
// relay opens the streams of callers on the uplink. Each stream carries a TLS connection between
// the forwarders of the two hosts, which the relay cannot read. The relay learns hosts, labels of
// routes, times and numbers of bytes, but neither users nor services.
//
// Apply sets the routes.
type Relay struct {
	pool     *transport.Pool // connections to other relays
	enforcer acl.Enforcer[onRoute]
	streams  *conns.PerKey[spiffe.ID]

	mu      sync.Mutex
	id      spiffe.ID // this host's ID as a relay; zero if it is not a relay
	routes  map[string]relayRoute
	to      map[spiffe.ID]bool // nodes that may make an uplink
	from    map[spiffe.ID]bool // peers that may open streams
	uplinks map[spiffe.ID][]*uplink
	arrived chan struct{} // closed when an uplink is added
	meets   meets
}

// onRoute identifies a stream of a peer on a route.
type onRoute struct {
	peer  spiffe.ID
	label string
}

type relayRoute struct {
	document.RelayRoute
	next spiffe.Dialable // next relay; zero if the route leads directly to a node
	at   document.Relay  // addresses and transport of the next relay
}

// uplink is a connection that a host has made to this relay.
type uplink struct {
	in   *transport.Incoming
	open func() (ended func(), ok bool)
}

// NewRelay returns a Relay without routes. It connects to other relays through the given pool,
// which may be nil if there are none.
func NewRelay(pool *transport.Pool) *Relay {
	return &Relay{pool: pool, streams: conns.NewPerKey[spiffe.ID](streamsPerNode), uplinks: map[spiffe.ID][]*uplink{}, arrived: make(chan struct{})}
}

// Apply sets the routes of a manifest. Streams on routes that are no longer in the manifest are
// reset. Each error concerns one route, and all other routes take effect.
func (s *Relay) Apply(f document.Forwarder) error {
	r := f.Relay
	if r == nil {
		r = &document.Relaying{}
	}
	byID := map[spiffe.ID]document.Relay{}
	for _, relay := range f.Relays {
		byID[relay.ID] = relay
	}
	routes, to, from := map[string]relayRoute{}, map[spiffe.ID]bool{}, map[spiffe.ID]bool{}
	var errs []error
	for _, x := range r.Routes {
		made := relayRoute{RelayRoute: x}
		if x.Next != "" {
			var err error
			if made.next, err = spiffe.Dial(x.To); err != nil {
				errs = append(errs, fmt.Errorf("route %s: %w", x.Label, err))
				continue
			}
			made.at = byID[x.To]
		} else {
			to[x.To] = true
		}
		for _, peer := range x.From {
			from[peer] = true
		}
		routes[x.Label] = made
	}
	s.mu.Lock()
	s.id, s.routes, s.to, s.from = r.ID, routes, to, from
	s.mu.Unlock()
	s.enforcer.SetRule(func(p onRoute) bool { return slices.Contains(routes[p.label].From, p.peer) })
	return errors.Join(errs...)
}

// ID returns the SPIFFE ID of this host as a relay. It returns the zero ID if this host is not a
// relay.
func (s *Relay) ID() spiffe.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Admits reports whether the peer of an incoming connection may use this relay, either to open
// streams through it or to be reached through it.
func (s *Relay) Admits(in *transport.Incoming) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Target != s.id || s.id.IsZero() {
		return false
	}
	if in.Uplink {
		return s.to[in.Peer.ID]
	}
	return s.from[in.Peer.ID]
}

// Uplink makes a host reachable through this relay, over a connection that the host itself has
// made. The host stays reachable until remove is called. Before the relay opens a stream on the
// connection, it calls open. If open returns false, the relay opens no stream. Otherwise it calls
// ended when the stream has ended.
func (s *Relay) Uplink(in *transport.Incoming, open func() (ended func(), ok bool)) (remove func()) {
	u := &uplink{in, open}
	node := in.Peer.ID
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uplinks[node] = append(s.uplinks[node], u)
	close(s.arrived)
	s.arrived = make(chan struct{})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.uplinks[node] = slices.DeleteFunc(s.uplinks[node], func(x *uplink) bool { return x == u })
		if len(s.uplinks[node]) == 0 {
			delete(s.uplinks, node)
		}
	}
}

// Passage is a stream that this relay has opened to the next host on the way to the target of a
// peer. The caller of Relay.Open forwards the data of the peer to it.
type Passage struct {
	wire.Stream
	release []func()
}

// Release must be called when the passage is no longer used.
func (p *Passage) Release() {
	for i := len(p.release) - 1; i >= 0; i-- {
		p.release[i]()
	}
}

// Open opens a stream on behalf of a peer, to the next host of the route whose label is given. If
// the peer later loses the permission to use the route, denied is called. The caller must call
// Release on the result. If Open fails, it returns a code for the peer and the reason.
func (s *Relay) Open(ctx context.Context, peer spiffe.ID, label string, denied func()) (*Passage, wire.Code, error) {
	s.mu.Lock()
	r := s.routes[label]
	vertex := s.id
	s.mu.Unlock()
	p := &Passage{}
	release, ok := s.enforcer.Admit(onRoute{peer, label}, denied)
	if !ok {
		return nil, wire.Denied, fmt.Errorf("it may not use route %q", label)
	}
	p.release = append(p.release, release)
	code, err := wire.Busy, error(nil)
	if release, ok = s.streams.Acquire(peer); !ok {
		err = fmt.Errorf("has %d streams through this relay", s.streams.Max())
	} else {
		p.release = append(p.release, release)
		code, err = s.follow(ctx, p, r, vertex)
	}
	if err != nil {
		p.Release()
		return nil, code, err
	}
	return p, wire.Done, nil
}

// follow opens the stream that a route requires: to a node on its uplink, or to the next relay.
func (s *Relay) follow(ctx context.Context, p *Passage, r relayRoute, vertex spiffe.ID) (wire.Code, error) {
	if r.Next == "" {
		return s.up(ctx, p, r.To)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*uplinkWait)
	defer cancel()
	st, err := s.pool.OpenRelayed(ctx, transport.ToRelay(vertex, r.next, r.at), r.Next)
	if err == nil {
		if err = st.Answer(ctx); err != nil {
			st.Release()
		}
	}
	if err != nil {
		var refused *transport.RefusedError
		if errors.As(err, &refused) && (refused.Code == wire.Busy || refused.Code == wire.Stopping) {
			return refused.Code, err
		}
		return wire.NoRoute, err
	}
	p.Stream = st.Stream
	p.release = append(p.release, st.Release)
	return wire.Done, nil
}

// up opens a stream to a node. It uses the newest uplink of the node that works.
func (s *Relay) up(ctx context.Context, p *Passage, node spiffe.ID) (wire.Code, error) {
	late := time.NewTimer(uplinkWait)
	defer late.Stop()
	for {
		s.mu.Lock()
		all, arrived := slices.Clone(s.uplinks[node]), s.arrived
		s.mu.Unlock()
		for _, u := range slices.Backward(all) {
			if u.in.Expired() || u.in.Silent() {
				continue
			}
			ended, ok := u.open()
			if !ok {
				continue
			}
			st, err := u.in.OpenStream()
			if err != nil {
				ended()
				var full *quic.StreamLimitReachedError
				if errors.As(err, &full) {
					return wire.Busy, fmt.Errorf("%s has %d streams on one connection", node, transport.MaxStreams)
				}
				continue
			}
			p.Stream = st
			p.release = append(p.release, ended)
			return wire.Done, nil
		}
		select {
		case <-arrived:
		case <-late.C:
			return wire.NoRoute, fmt.Errorf("%s has no connection to this relay", node)
		case <-ctx.Done():
			return wire.NoRoute, ctx.Err()
		}
	}
}
