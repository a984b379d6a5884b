package inbound

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/spiffe"
)

// meetRate limits, for each host, how many addresses of other hosts it may request per second, and
// how many callers may request its own address. Bursts of up to meetBurst requests are allowed.
const (
	meetRate  = 4
	meetBurst = 32
)

// meets limits the rate of the requests for direct connections in which each node takes part.
type meets struct {
	mu    sync.Mutex
	limit map[spiffe.ID]*rate.Limiter
}

// allow reports whether a node may take part in another request now. It must be called only for
// nodes that are on a route, because it keeps an entry for each node.
func (m *meets) allow(node spiffe.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limit == nil {
		m.limit = map[spiffe.ID]*rate.Limiter{}
	}
	l := m.limit[node]
	if l == nil {
		l = rate.NewLimiter(meetRate, meetBurst)
		m.limit[node] = l
	}
	return l.Allow()
}

// Meet helps a caller to connect directly to the host at the end of a route, without this relay.
// The peer is the identity of the caller, and the label names the route. Meet tells the host the
// address of the caller, and returns the addresses of both as this relay sees them. If Meet
// refuses, it returns a code for the caller and the reason.
func (s *Relay) Meet(peer spiffe.ID, label string, caller netip.AddrPort) (wire.Meeting, wire.Code, error) {
	release, ok := s.enforcer.Admit(onRoute{peer, label}, func() {})
	if !ok {
		return wire.Meeting{}, wire.Denied, fmt.Errorf("it may not use route %q", label)
	}
	defer release()
	s.mu.Lock()
	r := s.routes[label]
	all := slices.Clone(s.uplinks[r.To])
	s.mu.Unlock()
	if r.Next != "" || peer.Kind() != spiffe.KindNode {
		return wire.Meeting{}, wire.NoRoute, fmt.Errorf("route %q leads through two relays, whose ends do not meet", label)
	}
	if !s.meets.allow(peer) || !s.meets.allow(r.To) {
		return wire.Meeting{}, wire.Busy, fmt.Errorf("it, or %s, asks for too many meetings", r.To)
	}
	for _, u := range slices.Backward(all) {
		if u.in.Expired() || u.in.Silent() {
			continue
		}
		if host, ok := u.in.Meet(caller); ok {
			return wire.Meeting{Peer: host, Own: caller}, wire.Done, nil
		}
	}
	return wire.Meeting{}, wire.NoRoute, fmt.Errorf("%s is not to be met", r.To)
}
