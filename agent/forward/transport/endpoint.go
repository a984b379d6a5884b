package transport

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
)

const (
	// width is the number of working endpoints over which the streams to a target are spread. They
	// are the first working ones of the route, and each has a connection.
	width = 4
	// near is the latency below which endpoints count as equally near. Among equally near
	// endpoints, the load decides.
	near = 10 * time.Millisecond
	// fade is the half-life of a measured latency. After some time, the pool therefore tries an
	// endpoint again that was slow once.
	fade = 10 * time.Second
	// avoidFor is the time for which a failed endpoint is avoided. The time doubles with each
	// failure, up to maxAvoid.
	avoidFor = 10 * time.Second
	maxAvoid = 5 * time.Minute
	// lastResort is the head start that other endpoints have over an avoided endpoint.
	lastResort = time.Second
	// silence is the time without received packets after which a connection is avoided. A working
	// peer acknowledges a packet each second (keepAlive).
	silence = 3 * time.Second
)

// endpoint is the state of one forwarder that publishes a target, as one caller reaches it.
type endpoint struct {
	addresses document.Addresses
	via       *Via     // path through relays; nil if the forwarder is reached directly
	punched   *punched // direct path that a relay made possible; nil for other endpoints
	current   *conn
	good      string         // address that connected last; empty after a failure
	at        netip.AddrPort // resolved form of good
	streams   int            // streams that are open or being opened
	latency   time.Duration  // smoothed time from opening a stream to its answer
	measured  time.Time
	failures  int // consecutive failures to connect or to answer
	failed    time.Time

	connecting time.Time // beginning of a connection attempt; zero while there is none

	shaken   time.Duration // smoothed duration of a handshake through via; 0 before the first one
	shakenAt time.Time     // time of the last such handshake
}

// cost estimates how long a new stream would wait at the endpoint. The estimate is the latency
// multiplied by the number of streams, including the new one. It assumes that all streams are
// alike.
func (e *endpoint) cost(now time.Time, near time.Duration) float64 {
	known := float64(e.latency) * math.Exp2(-float64(now.Sub(e.measured))/float64(fade))
	return max(known, float64(near)) * float64(e.streams+1)
}

// avoided reports whether the pool should prefer other endpoints, because this one failed recently,
// is silent, or takes long to connect.
func (e *endpoint) avoided(now time.Time) bool {
	if e.current != nil && e.current.silent(now) || !e.connecting.IsZero() && now.Sub(e.connecting) >= conns.RaceStagger {
		return true
	}
	return e.failures > 0 && now.Sub(e.failed) < min(avoidFor<<min(e.failures-1, 10), maxAvoid)
}

func (e *endpoint) succeed(c *conn, took time.Duration, now time.Time) {
	switch {
	case e.measured.IsZero():
		e.latency = took
	case took < e.latency:
		e.latency += (took - e.latency) / 2
	default: // one slow answer may be chance
		e.latency += (took - e.latency) / 8
	}
	e.measured = now
	e.good, e.at, e.failures = c.address, c.at, 0
}

func (e *endpoint) fail(now time.Time) {
	e.good = ""
	e.failures++
	e.failed = now
}

// ordered returns the addresses of the endpoint in the order in which they are tried. The address
// that connected last comes first.
func (e *endpoint) ordered() []string {
	if i := slices.Index(e.addresses, e.good); i > 0 {
		return slices.Insert(slices.Delete(slices.Clone(e.addresses), i, i+1), 0, e.good)
	}
	return e.addresses
}

// order returns the endpoints of a route in the order in which they are tried:
//
//   - the cheaper of two endpoints that are drawn at random from the first few working ones
//   - the other working endpoints, those with a connection first
//   - the endpoints through relays
//   - the avoided endpoints
//
// The random choice keeps independent callers from gathering at the best endpoint, and from waiting
// for the worst (Mitzenmacher, The Power of Two Choices in Randomized Load Balancing). If no
// endpoint works directly, order also starts measuring the paths through relays, for which it uses
// svid.
func (p *Pool) order(r Route, svid *trust.SVID) []*endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var working, relayed, avoided []*endpoint
	to, all := p.endpoints(r)
	for _, e := range all {
		switch {
		case e.avoided(now):
			avoided = append(avoided, e)
		case e.via != nil:
			relayed = append(relayed, e)
		default:
			working = append(working, e)
		}
	}
	slices.SortStableFunc(avoided, func(a, b *endpoint) int { return a.failed.Compare(b.failed) })
	if n := min(len(working), width); n > 1 {
		first := p.random(n)
		if other := (first + 1 + p.random(n-1)) % n; working[other].cost(now, p.near) < working[first].cost(now, p.near) {
			first = other
		}
		chosen := working[first]
		working = slices.Delete(working, first, first+1)
		slices.SortStableFunc(working, func(a, b *endpoint) int { return cmp.Compare(unconnected(a), unconnected(b)) })
		working = slices.Insert(working, 0, chosen)
	}
	relayed = to.relays.choose(relayed, now, p.near, p.random)
	if len(working) == 0 {
		p.remeasureRelays(r, svid, &to.relays, relayed, now)
	}
	return slices.Concat(working, relayed, avoided)
}

func unconnected(e *endpoint) int {
	if e.current == nil {
		return 1
	}
	return 0
}

// endpoints returns the state of a route's target, and the endpoints of the target in the order of
// the route. It forgets endpoints that the route no longer lists, and retires their connections.
// The caller holds the lock.
func (p *Pool) endpoints(r Route) (*target, []*endpoint) {
	key := targetKey{r.Caller, r.Target}
	x := p.targets[key]
	if x == nil {
		x = &target{}
		p.targets[key] = x
	}
	known := x.endpoints
	listed := make(map[string]*endpoint, len(r.Endpoints))
	var all []*endpoint
	for _, addresses := range r.Endpoints {
		name := strings.Join(addresses, " ")
		if listed[name] != nil {
			continue
		}
		e := known[name]
		if e == nil {
			e = &endpoint{addresses: addresses}
		}
		listed[name] = e
		all = append(all, e)
	}
	for _, via := range r.Via {
		name := via.String()
		e := known[name]
		if e == nil {
			e = &endpoint{via: &via}
		}
		listed[name] = e
		all = append(all, e)
	}
	for _, e := range p.standing(r, known) {
		if name := e.punched.name(); listed[name] == nil {
			listed[name] = e
			all = append(all, e)
		}
	}
	for name, e := range known {
		if listed[name] == nil && e.current != nil {
			e.current.retire()
			e.current = nil
		}
	}
	x.endpoints = listed
	return x, all
}

// forget removes a connection that has ended from the pool. If the connection ended because its
// peer was silent, the endpoint counts as failed.
func (p *Pool) forget(c *conn) {
	defer p.busy.Done()
	c.idle.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	if c.endpoint.punched != nil {
		c.endpoint.punched.leave()
	}
	if c.endpoint.current == c {
		c.endpoint.current = nil
		var idle *quic.IdleTimeoutError
		if errors.As(context.Cause(c.Context()), &idle) {
			c.endpoint.fail(time.Now())
		}
	}
}

// count adds a number, which may be negative, to the number of an endpoint's streams.
func (p *Pool) count(e *endpoint, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.streams += by
}
