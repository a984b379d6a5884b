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
	// retryQUIC is the time after which QUIC is tried again for a forwarder that is reached over
	// TCP. The time doubles with each failure, up to maxRetryQUIC.
	retryQUIC    = 10 * time.Second
	maxRetryQUIC = time.Minute
	// steady is the time for which QUIC must have worked before the pool forgets earlier failures.
	steady = 5 * time.Minute
)

// path records whether a forwarder that answers over TCP can be reached over UDP.
type path struct {
	addresses document.Addresses
	blocked   bool
	since     time.Time // time of the last change of blocked
	reason    string
	failures  int
	until     time.Time // time of the next attempt over QUIC; blocked is final until then
}

// Fallbacks returns the forwarders that this host reaches over TCP because UDP packets do not
// arrive, sorted by address. They are part of the host's report.
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

// leads reports whether a connection of the pool uses TCP because UDP does not pass on this path.
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

// block records that an endpoint can be reached over TCP and not over UDP. The caller holds the
// lock.
func (p *Pool) block(e *endpoint, reason string) {
	x, now := p.path(e), time.Now()
	switch {
	case x.blocked && now.Before(x.until):
		return // already recorded because of another connection
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

// pass records that an endpoint can be reached over UDP. The caller holds the lock.
func (p *Pool) pass(e *endpoint) {
	if x := p.paths[strings.Join(e.addresses, " ")]; x != nil && x.blocked {
		x.blocked, x.since = false, time.Now()
	}
}

// retryLater schedules the next attempt over QUIC for an endpoint whose connection uses TCP. The
// attempt is cancelled when that connection ends. The caller holds the lock.
func (p *Pool) retryLater(c *conn) {
	timer := time.AfterFunc(max(time.Until(p.path(c.endpoint).until), 0), func() {
		if p.begin() {
			defer p.busy.Done()
			p.tryQUIC(c)
		}
	})
	context.AfterFunc(c.Context(), func() { timer.Stop() })
}

// tryQUIC tries to connect over QUIC, and replaces a connection over TCP if that succeeds.
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
	_ = p.install(c.route, won) // an error means that the pool is closed or the trust has changed; the next connection reports it
}
