package acl

import (
	"sync"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// Limits holds callers to what the topology lets a service, and a caller, have at this host: connections,
// opens in a second, bytes in a second. Both apply to whatever a
// caller has of a service, so the lower one decides. The zero Limits limits nothing and is ready. It keeps whoever
// called, or was called, since the start: as many as the allow lists name.
type Limits struct {
	mu                sync.Mutex
	services, callers group
	shares            map[sharing]*Share
}

type sharing struct{ service, caller spiffe.ID }

// group is the limits of several, by ID.
type group struct {
	inForce map[spiffe.ID]document.Limits
	known   map[spiffe.ID]*budget
}

// Apply puts a manifest's limits in force. What is open stays open, and counts.
func (t *Limits) Apply(f document.Forwarder) {
	services, callers := map[spiffe.ID]document.Limits{}, map[spiffe.ID]document.Limits{}
	for _, p := range f.Publish {
		services[p.ID] = p.Limits
	}
	for _, c := range f.Limits {
		callers[c.ID] = c.Limits
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.services.apply(services)
	t.callers.apply(callers)
}

func (g *group) apply(limits map[spiffe.ID]document.Limits) {
	g.inForce = limits
	for id, b := range g.known {
		b.apply(limits[id])
	}
}

func (g *group) of(id spiffe.ID) *budget {
	b := g.known[id]
	if b == nil {
		if g.known == nil {
			g.known = map[spiffe.ID]*budget{}
		}
		b = &budget{id: id}
		b.apply(g.inForce[id])
		g.known[id] = b
	}
	return b
}

// Share is what a caller has of a service, whatever limits come into force.
func (t *Limits) Share(service, caller spiffe.ID) *Share {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := sharing{service, caller}
	s := t.shares[k]
	if s == nil {
		if t.shares == nil {
			t.shares = map[sharing]*Share{}
		}
		s = &Share{service: t.services.of(service), caller: t.callers.of(caller), turn: make(chan struct{}, 1)}
		t.shares[k] = s
	}
	return s
}
