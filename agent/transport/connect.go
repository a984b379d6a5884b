package transport

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"florete/agent/identity"
	"florete/agent/tally"
	"florete/agent/usage"
	"florete/agent/wire"
)

// connect makes a new link for a route and makes it current. Endpoints are tried in order, each a
// little after the one before or as soon as that one fails; the first to connect
// wins.
func (p *Pool) connect(r Route, svid *identity.SVID) (*link, error) {
	if len(r.Endpoints) == 0 {
		return nil, fmt.Errorf("%s: no endpoint", r.Target.ID())
	}
	if !p.begin() {
		return nil, p.ctx.Err()
	}
	defer p.busy.Done()
	ctx, cancel := context.WithTimeout(p.ctx, dialTimeout)
	defer cancel()
	endpoints := p.order(r)
	type result struct {
		link *link
		err  error
	}
	results := make(chan result)
	next := time.NewTimer(0)
	defer next.Stop()
	var won *link
	var failed error
	for running := 0; running > 0 || (won == nil && len(endpoints) > 0); {
		select {
		case <-next.C:
			if won != nil || len(endpoints) == 0 {
				continue
			}
			endpoint := endpoints[0]
			endpoints = endpoints[1:]
			running++
			go func() {
				l, err := p.dial(ctx, r, svid, endpoint)
				results <- result{l, err}
			}()
			next.Reset(stagger)
		case res := <-results:
			running--
			switch {
			case res.err != nil:
				failed = and(failed, res.err)
				next.Reset(0)
			case won == nil:
				won = res.link
				cancel()
			default:
				closeWith(res.link.conn, wire.Done)
			}
		}
	}
	if won == nil {
		return nil, failed
	}
	return won, p.install(r, won)
}

// and is errors.Join in one line.
func and(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w; %w", a, b)
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

// order puts the endpoint that worked last first and the one that failed last
// last.
func (p *Pool) order(r Route) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	endpoints := slices.Clone(r.Endpoints)
	s := p.slots[slotKey{r.Caller, r.Target.ID()}]
	if s == nil {
		return endpoints
	}
	rank := func(e string) int {
		switch e {
		case s.good:
			return 0
		case s.avoid:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(endpoints, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return endpoints
}

// install makes l current for its route, unless the pool or the trust it was made
// under has gone meanwhile.
func (p *Pool) install(r Route, l *link) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		closeWith(l.conn, wire.Stopping)
		return p.ctx.Err()
	}
	if !l.peer.TrustedBy(p.identities().Trust) {
		closeWith(l.conn, wire.Untrusted)
		return fmt.Errorf("%s: trust roots changed while it connected", l.peer.ID)
	}
	key := slotKey{r.Caller, r.Target.ID()}
	s := p.slots[key]
	if s == nil {
		s = &slot{}
		p.slots[key] = s
	}
	if s.current != nil {
		s.current.retire()
	}
	row := usage.Row{Side: tally.Out, Target: l.peer.ID, Caller: r.Caller, Remote: l.endpoint, Allowed: MaxStreams}
	var remove func()
	l.usage, remove = p.usage.Add(row, l.conn, &l.flows.Read, func() { closeWith(l.conn, wire.Overloaded) })
	s.current = l
	p.links[l] = struct{}{}
	p.busy.Add(1)
	context.AfterFunc(l.conn.Context(), func() {
		remove()
		p.forget(key, l)
	})
	return nil
}

func (p *Pool) forget(key slotKey, l *link) {
	defer p.busy.Done()
	l.idle.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
	if s := p.slots[key]; s.current == l {
		s.current = nil
	}
}

// Recheck closes the connections whose target the trust roots in force would no
// longer prove. It is to be called when they have changed.
func (p *Pool) Recheck() {
	p.mu.Lock()
	defer p.mu.Unlock()
	trust := p.identities().Trust
	for l := range p.links {
		if !l.peer.TrustedBy(trust) {
			closeWith(l.conn, wire.Untrusted)
		}
	}
}
