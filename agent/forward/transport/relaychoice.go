package transport

import (
	"context"
	"slices"
	"time"

	"github.com/florete/florete/internal/trust"
)

const (
	// remeasure is the interval at which all paths through relays to a target are measured, while
	// one of them is in use.
	remeasure = 30 * time.Second
	// New streams change to another path if it has been faster for the time better, by a fifth and
	// by at least clearly.
	better  = 10 * time.Second
	clearly = 10 * time.Millisecond
	// perRelay is added to the time of a path for each relay after the first.
	perRelay = 10 * time.Millisecond
)

// relayChoice chooses one of the paths through relays to a target. New streams stay on the chosen
// path until it fails, or until another path has been clearly faster for a while.
type relayChoice struct {
	chosen, rival *endpoint // path in use, and a faster one; nil for none
	since         time.Time // time since which rival is faster
	measured      time.Time // beginning of the last measurement of all paths
}

// detour returns the measure by which paths through relays are compared. It is the time of a
// handshake with the target, plus perRelay for each relay after the first. A time below the
// argument near is replaced by near, because small differences do not matter.
func (e *endpoint) detour(near time.Duration) time.Duration {
	return max(e.shaken, near) + time.Duration(len(e.via.Relays)-1)*perRelay
}

// choose returns the working paths through relays to a target in the order in which new streams try
// them. The chosen path is the first. The time of a path that was not measured yet is assumed to be
// the argument near. The function random returns a random number below its argument, and spreads
// callers over equally fast relays.
func (x *relayChoice) choose(working []*endpoint, now time.Time, near time.Duration, random func(n int) int) []*endpoint {
	if len(working) == 0 {
		return nil
	}
	order := slices.Clone(working)
	slices.SortStableFunc(order, func(a, b *endpoint) int { return int(a.detour(near) - b.detour(near)) })
	best := order[0]
	switch {
	case !slices.Contains(working, x.chosen):
		// Choose at random between equally fast relays, so that callers spread over them.
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

// shook records how long a handshake through relays took. A single slow handshake may be chance, so
// it changes the smoothed time less than a fast one.
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

// remeasureRelays measures paths through relays by a handshake on each, if the last measurement was
// at least remeasure ago. It leaves out paths on which a handshake was made since. The caller holds
// the lock.
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

// shakeThrough measures a path through relays by making a connection to the target. A later stream
// may use this connection.
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
