package acl

import (
	"net/netip"
	"sync"

	"github.com/florete/florete/internal/document"
)

// Sources limits callers without an identity by their IP addresses. Each IPv4 address and each IPv6
// /64 network has the full limits, because one host can use every address of its /64 network.
// Sources is safe for concurrent use.
type Sources struct {
	most int // number of addresses to remember

	mu     sync.Mutex
	limits document.Limits
	known  map[netip.Prefix]*Share
}

// NewSources returns a Sources with the given limits. It remembers addresses without open
// connections only as long as it knows fewer than most addresses.
func NewSources(most int, limits document.Limits) *Sources {
	return &Sources{most: most, limits: limits, known: map[netip.Prefix]*Share{}}
}

// Apply replaces the limits. Open connections stay open, even above a new limit, and count towards
// it.
func (s *Sources) Apply(limits document.Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limits == s.limits {
		return
	}
	s.limits = limits
	for _, share := range s.known {
		share.caller.apply(limits)
	}
}

// Open counts a connection from the network from until release is called. The caller must call
// release exactly once. The returned Share limits the traffic of that network. If a limit is
// reached, Open returns an error that names the limit.
func (s *Sources) Open(from netip.Prefix) (share *Share, release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	share = s.known[from]
	if share == nil {
		s.forget()
		share = &Share{caller: &budget{name: from.Addr().String()}, turn: make(chan struct{}, 1)}
		share.caller.apply(s.limits)
		s.known[from] = share
	}
	release, err = share.Open()
	return share, release, err
}

// forget removes addresses without a connection if there are too many addresses. An address that
// returns then has its full rate again. The caller must hold the lock.
func (s *Sources) forget() {
	if len(s.known) < s.most {
		return
	}
	for from, share := range s.known {
		if share.caller.open.Load() == 0 {
			delete(s.known, from)
		}
	}
}
