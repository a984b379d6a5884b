package transport

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/metrics"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/providers/api/race"
)

// connect makes a new connection for a route and makes it current. All addresses of all
// endpoints are raced.
func (p *Pool) connect(r Route, svid *florete.SVID) (*conn, error) {
	if len(r.Endpoints) == 0 {
		return nil, fmt.Errorf("%s: no endpoint", r.Target.ID())
	}
	if !p.begin() {
		return nil, p.ctx.Err()
	}
	defer p.busy.Done()
	ctx, cancel := context.WithTimeout(p.ctx, dialTimeout)
	defer cancel()
	discard := func(c *conn) { closeWith(c.quic, wire.Done) }
	won, err := race.First(ctx, p.order(r), func(ctx context.Context, endpoint string) (*conn, error) {
		found, err := race.Resolve(ctx, endpoint)
		if err != nil {
			return nil, fmt.Errorf("endpoint %q: %w", endpoint, err)
		}
		return race.First(ctx, p.sort(r, found), func(ctx context.Context, at netip.AddrPort) (*conn, error) {
			return p.dial(ctx, r, svid, endpoint, at)
		}, discard)
	}, discard)
	if err != nil {
		return nil, err
	}
	return won, p.install(r, won)
}

// begin counts a dial in, unless the pool is closed.
func (p *Pool) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.busy.Add(1)
	return true
}

// order lists all addresses, those of the forwarder that worked last first and of the one
// that failed last last; of each forwarder the address that worked last first.
func (p *Pool) order(r Route) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	hosts := slices.Clone(r.Endpoints)
	if s := p.targets[targetKey{r.Caller, r.Target}]; s != nil {
		slices.SortStableFunc(hosts, func(a, b florete.Addresses) int {
			return cmp.Or(contain(b, s.good)-contain(a, s.good), contain(a, s.avoid)-contain(b, s.avoid))
		})
		if i := slices.Index(hosts[0], s.good); i > 0 {
			hosts[0] = slices.Insert(slices.Delete(slices.Clone(hosts[0]), i, i+1), 0, s.good)
		}
	}
	return slices.Concat(hosts...)
}

// contain is 1 where they do.
func contain(addresses florete.Addresses, address string) int {
	if slices.Contains(addresses, address) {
		return 1
	}
	return 0
}

// sort puts where a name led to that worked last first.
func (p *Pool) sort(r Route, found []netip.AddrPort) []netip.AddrPort {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.targets[targetKey{r.Caller, r.Target}]; s != nil {
		if i := slices.Index(found, s.at); i > 0 {
			found = slices.Insert(slices.Delete(found, i, i+1), 0, s.at)
		}
	}
	return found
}

// install makes a connection current for its route, unless the pool or the trust it was made
// under has gone meanwhile.
func (p *Pool) install(r Route, c *conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		closeWith(c.quic, wire.Stopping)
		return p.ctx.Err()
	}
	if !c.peer.TrustedBy(p.identities().Trust) {
		closeWith(c.quic, wire.Untrusted)
		return fmt.Errorf("%s: trust roots changed while it connected", c.peer.ID)
	}
	key := targetKey{r.Caller, r.Target}
	s := p.targets[key]
	if s == nil {
		s = &target{}
		p.targets[key] = s
	}
	if s.current != nil {
		s.current.retire()
	}
	row := usage.Row{Direction: metrics.Out, Target: c.peer.ID, Caller: r.Caller, Remote: c.endpoint, Allowed: MaxStreams}
	var remove func()
	c.usage, remove = p.usage.Add(row, c.quic, &c.mux.Read, func() { closeWith(c.quic, wire.Busy) })
	s.current = c
	p.conns[c] = struct{}{}
	p.busy.Add(1)
	context.AfterFunc(c.quic.Context(), func() {
		remove()
		p.forget(key, c)
	})
	return nil
}

func (p *Pool) forget(key targetKey, c *conn) {
	defer p.busy.Done()
	c.idle.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	if s := p.targets[key]; s.current == c {
		s.current = nil
	}
}

// Recheck closes the connections whose target the trust roots in force would no
// longer prove. It is to be called when they have changed.
func (p *Pool) Recheck() {
	p.mu.Lock()
	defer p.mu.Unlock()
	trust := p.identities().Trust
	for c := range p.conns {
		if !c.peer.TrustedBy(trust) {
			closeWith(c.quic, wire.Untrusted)
		}
	}
}
