package inbound

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/spiffe"
)

// Limits bounds the resources used by peers. A zero field means the default.
type Limits struct {
	Connections int // of a peer over QUIC
	Total       int // of all peers over QUIC
	Streams     int // of a peer over all its connections
	Opening     int // streams of a peer whose upstream is not connected yet; further ones wait
	Failures    int // failed streams of a peer per second: refused, or ended before the answer

	OverTCP      int // connections of a peer over TCP, which carry one stream at a time
	TotalOverTCP int // of all peers
}

// An idle connection uses 80 KiB, so a peer uses at most 40 MiB. A stream uses one file, 20 KiB
// and, while it is blocked, 64 KiB of kernel memory. A peer has an eighth of the files that a
// forwarder may open (LimitNOFILE=). A connection over TCP uses one file and 40 KiB.
var defaults = Limits{Connections: 512, Total: 4096, Streams: 1 << 13, Opening: 256, Failures: 2048, OverTCP: 4096, TotalOverTCP: 1 << 14}

func (l Limits) orDefaults() Limits {
	for _, f := range []struct {
		limit *int
		value int
	}{
		{&l.Connections, defaults.Connections}, {&l.Total, defaults.Total}, {&l.Streams, defaults.Streams},
		{&l.Opening, defaults.Opening}, {&l.Failures, defaults.Failures},
		{&l.OverTCP, defaults.OverTCP}, {&l.TotalOverTCP, defaults.TotalOverTCP},
	} {
		if *f.limit == 0 {
			*f.limit = f.value
		}
	}
	return l
}

// connLimit limits the connections of each peer and of all peers.
type connLimit struct {
	each *conns.PerKey[spiffe.ID]
	all  *conns.PerKey[struct{}]
}

func newConnLimit(each, all int) connLimit {
	return connLimit{conns.NewPerKey[spiffe.ID](each), conns.NewPerKey[struct{}](all)}
}

// acquire counts a connection of a peer, or returns an error if there are too many.
func (l *connLimit) acquire(peer spiffe.ID) (release func(), err error) {
	releaseOwn, ok := l.each.Acquire(peer)
	if !ok {
		return nil, fmt.Errorf("has %d connections to this host", l.each.Max())
	}
	releaseTotal, ok := l.all.Acquire(struct{}{})
	if !ok {
		releaseOwn()
		return nil, fmt.Errorf("this host has %d connections", l.all.Max())
	}
	return func() { releaseTotal(); releaseOwn() }, nil
}

// peers tracks the load of every peer since the start. There are no more peers than the allow lists
// name.
type peers struct {
	limits Limits
	mu     sync.Mutex
	all    map[spiffe.ID]*peer
}

func (p *peers) of(id spiffe.ID) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[spiffe.ID]*peer{}
	}
	one := p.all[id]
	if one == nil {
		one = &peer{opening: make(chan struct{}, p.limits.Opening), rate: p.limits.Failures}
		p.all[id] = one
	}
	return one
}

// peer limits the load of one peer. Streams that are not accepted count towards QUIC's limit of
// open streams, so that only this peer is slowed down.
type peer struct {
	opening chan struct{}
	held    datagram.Held

	mu   sync.Mutex
	rate int       // failures per second, and size of a burst
	paid time.Time // time at which all failures so far are paid for
}

// begin waits until the peer may open a stream. done must be called when the stream is open or has
// failed.
func (p *peer) begin(ctx context.Context) (done func(opened bool), err error) {
	if err := p.pay(ctx); err != nil {
		return nil, err
	}
	select {
	case p.opening <- struct{}{}:
		return p.done, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// pay waits while the peer has had more failures than allowed.
func (p *peer) pay(ctx context.Context) error {
	p.mu.Lock()
	wait := time.Until(p.paid.Add(-time.Second))
	p.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *peer) done(opened bool) {
	<-p.opening
	if opened {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.paid.Before(now) {
		p.paid = now
	}
	p.paid = p.paid.Add(time.Second / time.Duration(p.rate))
}
