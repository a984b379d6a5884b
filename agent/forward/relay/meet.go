package relay

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/spiffe"
)

// meetRate bounds how often a host asks to meet another one, and how often a host is told about
// callers, per second. Short bursts may be larger.
const (
	meetRate  = 4
	meetBurst = 32
)

// meets counts the meetings of nodes.
type meets struct {
	mu    sync.Mutex
	limit map[spiffe.ID]*rate.Limiter
}

// allow counts a meeting of a node that a route names.
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

// Meet tells the host that a route leads to that a caller at an address wants to connect directly,
// and returns the addresses that the caller needs.
func (s *Server) Meet(peer spiffe.ID, label string, caller netip.AddrPort) (wire.Meeting, wire.Code, error) {
	release, ok := s.gate.Admit(passage{peer, label}, func() {})
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
