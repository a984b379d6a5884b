package transport

import (
	"context"
	"slices"
	"time"

	"github.com/florete/florete/internal/trust"
)

const (
	// remeasure is the time after which the paths through relays to a target are measured again,
	// while one of them is used.
	remeasure = 30 * time.Second
	// better is the time for which another path must have been better by clearly and a fifth before
	// new streams use it.
	better  = 10 * time.Second
	clearly = 10 * time.Millisecond
	// perRelay is added for each relay after the first.
	perRelay = 10 * time.Millisecond
)

// relayChoice is the choice between the paths through relays to one target. New streams stay on a
// path until it fails, or until another has been better for a while.
type relayChoice struct {
	chosen, rival *endpoint
	since         time.Time // time since which rival is better
	measured      time.Time // beginning of the last measurement of all paths
}

// detour returns the time that the path to an endpoint through relays takes for a handshake with the
// target, and an amount for each further relay. Differences below near do not count.
func (e *endpoint) detour(near time.Duration) time.Duration {
	return max(e.shaken, near) + time.Duration(len(e.via.Relays)-1)*perRelay
}

// choose returns the working paths through relays to a target in the order in which they are tried.
// Those that were not measured yet count as near. random returns a number below n.
func (x *relayChoice) choose(working []*endpoint, now time.Time, near time.Duration, random func(n int) int) []*endpoint {
	if len(working) == 0 {
		return nil
	}
	order := slices.Clone(working)
	slices.SortStableFunc(order, func(a, b *endpoint) int { return int(a.detour(near) - b.detour(near)) })
	best := order[0]
	switch {
	case !slices.Contains(working, x.chosen):
		// Callers spread over the relays that are equally good.
		equal := 1
		for equal < len(order) && order[equal].detour(near) == best.detour(near) {
			equal++
		}
		x.chosen, x.rival = order[random(equal)], nil
	case x.chosen.detour(near)-best.detour(near) < max(clearly, x.chosen.detour(near)/5):
		x.rival = nil
	case x.rival != best:
		x.rival, x.since = best, now
	case now.Sub(x.since) >= better:
		x.chosen, x.rival = best, nil
	}
	i := slices.Index(order, x.chosen)
	return slices.Insert(slices.Delete(order, i, i+1), 0, x.chosen)
}

// shook records the time of a handshake through relays. One that took long may be chance.
func (e *endpoint) shook(took time.Duration, now time.Time) {
	switch {
	case e.shaken == 0:
		e.shaken = took
	case took < e.shaken:
		e.shaken -= (e.shaken - took) / 2
	default:
		e.shaken += (took - e.shaken) / 4
	}
	e.shakenAt = now
}

// remeasureRelays measures the paths that were not used for a while by a handshake on each, if it is
// time. The caller holds the lock.
func (p *Pool) remeasureRelays(r Route, svid *trust.SVID, x *relayChoice, working []*endpoint, now time.Time) {
	if len(working) < 2 || now.Sub(x.measured) < remeasure || p.ctx.Err() != nil {
		return
	}
	x.measured = now
	for _, e := range working {
		if now.Sub(e.shakenAt) >= remeasure {
			p.busy.Go(func() { p.shakeThrough(r, svid, e) })
		}
	}
}

// shakeThrough makes a connection to the target through relays, for the next stream or for nobody.
func (p *Pool) shakeThrough(r Route, svid *trust.SVID, e *endpoint) {
	p.mu.Lock()
	var l *tcpLink
	if e.current != nil && e.current.usable(svid) {
		l, _ = e.current.link.(*tcpLink)
	}
	p.mu.Unlock()
	if l == nil {
		<-p.dial(r, svid, e)
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, handshakeTimeout)
	defer cancel()
	if c, err := l.make(ctx); err == nil {
		l.wait(c)
	}
}
