package transport

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
)

const (
	// retryQUIC is the time after which QUIC is tried again. It doubles each time, up to
	// maxRetryQUIC.
	retryQUIC    = 10 * time.Second
	maxRetryQUIC = time.Minute
	// steady is the time for which QUIC must have worked before earlier failures are forgotten.
	steady = 5 * time.Minute
)

// path is the state of UDP to a forwarder that can be reached over TCP.
type path struct {
	addresses document.Addresses
	blocked   bool
	since     time.Time // time since which blocked has its value
	reason    string
	failures  int
	until     time.Time // time of the next attempt over QUIC
}

// Fallbacks returns the current fallbacks to TCP, sorted.
func (p *Pool) Fallbacks() (all []hostreport.Fallback) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.paths {
		if x.blocked && p.leads(x) {
			all = append(all, hostreport.Fallback{Forwarder: x.addresses, Since: unixtime.Of(x.since), Reason: x.reason, Retry: unixtime.Of(x.until)})
		}
	}
	slices.SortFunc(all, func(a, b hostreport.Fallback) int { return slices.Compare(a.Forwarder, b.Forwarder) })
	return all
}

// leads reports whether connections use TCP because of a path.
func (p *Pool) leads(x *path) bool {
	for c := range p.conns {
		if c.transport == document.OverTCP && c.route.Transport == document.AnyTransport && slices.Equal(c.endpoint.addresses, x.addresses) {
			return true
		}
	}
	return false
}

func (p *Pool) path(e *endpoint) *path {
	name := strings.Join(e.addresses, " ")
	x := p.paths[name]
	if x == nil {
		x = &path{addresses: e.addresses}
		p.paths[name] = x
	}
	return x
}

// block records that TCP leads to an endpoint and UDP does not. The caller holds the lock.
func (p *Pool) block(e *endpoint, reason string) {
	x, now := p.path(e), time.Now()
	switch {
	case x.blocked && now.Before(x.until):
		return // already recorded for another connection of the same host
	case !x.blocked && now.Sub(x.since) > steady:
		x.failures = 0
	}
	if !x.blocked {
		x.blocked, x.since = true, now
	}
	x.reason = reason
	x.until = now.Add(min(p.retryQUIC<<min(x.failures, 10), maxRetryQUIC))
	x.failures++
}

// pass records that UDP leads to an endpoint. The caller holds the lock.
func (p *Pool) pass(e *endpoint) {
	if x := p.paths[strings.Join(e.addresses, " ")]; x != nil && x.blocked {
		x.blocked, x.since = false, time.Now()
	}
}

// retryLater tries QUIC again, as long as c, over TCP, is the connection of its endpoint. The
// caller holds the lock.
func (p *Pool) retryLater(c *conn) {
	timer := time.AfterFunc(max(time.Until(p.path(c.endpoint).until), 0), func() {
		if p.begin() {
			defer p.busy.Done()
			p.tryQUIC(c)
		}
	})
	context.AfterFunc(c.Context(), func() { timer.Stop() })
}

// tryQUIC replaces a connection over TCP by one over QUIC if UDP passes.
func (p *Pool) tryQUIC(c *conn) {
	svid := p.identities().SVID(c.route.Caller)
	if svid == nil || c.Context().Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, handshakeTimeout)
	defer cancel()
	won, err := p.race(ctx, destination{route: c.route, svid: svid, endpoint: c.endpoint}, c.endpoint.addresses, p.dialQUIC)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		x := p.path(c.endpoint)
		x.until = time.Now()
		p.block(c.endpoint, x.reason)
		if c.endpoint.current == c {
			p.retryLater(c)
		}
		return
	}
	p.pass(c.endpoint)
	if c.endpoint.current != c {
		discard(won)
		return
	}
	_ = p.install(c.route, won) // an error is due to the end of the pool or to trust; the next connection reports it
}
