package transport

import (
	"net/netip"
	"time"
)

// InOrder makes the pool draw the first working endpoint of a route each time.
func (p *Pool) InOrder() { p.random = func(int) int { return 0 } }

// EquallyFar makes latencies not count: on a busy machine, some are long by chance.
func (p *Pool) EquallyFar() { p.near = time.Hour }

// Order is in which order addresses are tried.
func (p *Pool) Order(r Route) (all []string) {
	for _, e := range p.order(r) {
		all = append(all, e.ordered()...)
	}
	return all
}

// Sort is the same of what one of them led to.
func (p *Pool) Sort(r Route, found []netip.AddrPort) []netip.AddrPort {
	return p.sort(p.order(r)[0], found)
}

// RetryQUIC is after how long QUIC is tried again.
func (p *Pool) RetryQUIC(after time.Duration) { p.retryQUIC = after }

// Prepared reports whether all connections over QUIC have a path to migrate to.
func (p *Pool) Prepared() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if l, ok := c.link.(*quicLink); ok && !l.paths.ready.Load() {
			return false
		}
	}
	return true
}

// RetireSuperseded does at a given time what the pool does every few seconds.
func (p *Pool) RetireSuperseded(now time.Time) { p.retireSuperseded(now) }
