package acl

import (
	"sync"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// Limits enforces the limits that the topology sets at this host on connections, on new connections
// per second, and on bytes per second.
//
// Each connection counts towards the limits of its service and towards those of its caller. On a
// relay, the limits apply to each node that connects to other hosts through the relay. The zero
// Limits is ready for use and limits nothing. Limits is safe for concurrent use.
//
// Limits never removes the entry of a service or caller. The allow lists bound the number of
// entries.
type Limits struct {
	mu                sync.Mutex
	services, callers group
	relay             spiffe.ID // this host's ID as a relay; zero if it is not a relay
	relayed           group     // nodes
	shares            map[sharing]*Share
}

type sharing struct{ service, caller spiffe.ID }

// group holds the limits of all services, of all callers, or of all nodes.
type group struct {
	inForce func(spiffe.ID) document.Limits
	known   map[spiffe.ID]*budget
}

// Apply replaces the limits by those of a manifest. Open connections stay open, even above a new
// limit, and count towards it.
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
	t.services.apply(func(id spiffe.ID) document.Limits { return services[id] })
	t.callers.apply(func(id spiffe.ID) document.Limits { return callers[id] })
	var relay document.Relaying
	if f.Relay != nil {
		relay = *f.Relay
	}
	t.relay = relay.ID
	t.relayed.apply(func(spiffe.ID) document.Limits { return relay.Limits })
}

func (g *group) apply(limits func(spiffe.ID) document.Limits) {
	g.inForce = limits
	for id, b := range g.known {
		b.apply(limits(id))
	}
}

func (g *group) of(id spiffe.ID) *budget {
	b := g.known[id]
	if b == nil {
		if g.known == nil {
			g.known = map[spiffe.ID]*budget{}
		}
		b = &budget{name: id.Short()}
		if g.inForce != nil {
			b.apply(g.inForce(id))
		}
		g.known[id] = b
	}
	return b
}

// Share returns the Share for the connections from one caller to one service. All calls for the
// same pair return the same Share, which follows later changes of the limits.
func (t *Limits) Share(service, caller spiffe.ID) *Share {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := sharing{service, caller}
	s := t.shares[k]
	if s == nil {
		if t.shares == nil {
			t.shares = map[sharing]*Share{}
		}
		callers := &t.callers
		if service == t.relay {
			callers = &t.relayed
		}
		s = &Share{service: t.services.of(service), caller: callers.of(caller), turn: make(chan struct{}, 1)}
		t.shares[k] = s
	}
	return s
}
