package transport

import (
	"net/netip"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
)

// InOrder makes the pool draw the first working endpoint of a route each time.
func (p *Pool) InOrder() { p.random = func(int) int { return 0 } }

// EquallyFar makes latencies not count: on a busy machine, some are long by chance.
func (p *Pool) EquallyFar() { p.near = time.Hour }

// Order returns the order in which addresses are tried.
func (p *Pool) Order(r Route) (all []string) {
	for _, e := range p.order(r, nil) {
		all = append(all, e.ordered()...)
	}
	return all
}

// Sort is like Order for the results of resolving one of them.
func (p *Pool) Sort(r Route, found []netip.AddrPort) []netip.AddrPort {
	return p.sort(p.order(r, nil)[0], found)
}

// RetryQUIC sets the time after which QUIC is tried again.
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

// RetireSuperseded does the periodic retirement of connections at a given time.
func (p *Pool) RetireSuperseded(now time.Time) { p.retireSuperseded(now) }

// Latency returns the latency of a route's first endpoint.
func (p *Pool) Latency(r Route) time.Duration { return p.first(r).latency }

// Failures returns the number of successive failures of a route's first endpoint.
func (p *Pool) Failures(r Route) int { return p.first(r).failures }

func (p *Pool) first(r Route) endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, all := p.endpoints(r)
	return *all[0]
}

// overQUIC reports whether a connection over QUIC satisfies has.
func (p *Pool) overQUIC(has func(*conn, *quicLink) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if l, ok := c.link.(*quicLink); ok && has(c, l) {
			return true
		}
	}
	return false
}

// Silent reports whether a connection counts as silent.
func (p *Pool) Silent() bool {
	return p.overQUIC(func(c *conn, _ *quicLink) bool { return c.doubt == silent })
}

// Migrates reports whether a connection has begun to migrate.
func (p *Pool) Migrates() bool {
	return p.overQUIC(func(_ *conn, l *quicLink) bool { return !l.paths.begun.IsZero() && !l.paths.busy.Load() })
}

// Packets returns the number of packets that all connections have sent and received.
func (p *Pool) Packets() (n int64) {
	p.overQUIC(func(_ *conn, l *quicLink) bool {
		s := l.ConnectionStats()
		n += int64(s.PacketsSent + s.PacketsReceived)
		return false
	})
	return n
}

// TestSlow checks that a slow endpoint gets few streams until its last answer is long ago.
func TestSlow(t *testing.T) {
	p := &Pool{near: near, targets: map[targetKey]*target{}}
	turn := 0
	p.random = func(n int) int { turn++; return turn / 2 % n } // each pair of draws, as often
	r := Route{Endpoints: []document.Addresses{{"slow"}, {"fast"}}}
	took := map[string]time.Duration{"slow": 6 * near, "fast": near / 10}
	now := time.Now()
	drawn := map[string]int{}
	for range 40 {
		e := p.order(r, nil)[0]
		e.succeed(&conn{}, took[e.addresses[0]], now)
		drawn[e.addresses[0]]++
	}
	if n := drawn["slow"]; n < 1 || n > 4 {
		t.Errorf("the slow endpoint has %d of 40 streams, want a few", n)
	}
	_, all := p.endpoints(r)
	for _, e := range all {
		if e.cost(now.Add(time.Minute), near) != float64(near) {
			t.Errorf("%s still costs %s after a minute", e.addresses[0], time.Duration(e.cost(now.Add(time.Minute), near)))
		}
	}
}
