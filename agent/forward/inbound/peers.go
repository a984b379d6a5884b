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

// Limits bound what peers have and cause. Zero fields are for the defaults.
type Limits struct {
	Connections int // of a peer, over QUIC
	Total       int // connections of all peers, over QUIC
	Streams     int // of a peer, in all of its connections
	Opening     int // streams of a peer whose service is not connected yet; more wait
	Failures    int // of a peer's streams, in a second: those refused, or ended before the answer

	OverTCP      int // connections of a peer over TCP, which carry one stream at a time
	TotalOverTCP int // of all peers
}

// Idle connections take 80 KiB each, 40 MiB for a peer. A stream takes a file, 20 KiB and,
// while it stands still, 64 KiB of the kernel's; a peer has an eighth of the files that a
// forwarder may have open (LimitNOFILE=). A connection over TCP takes one too, and 40 KiB.
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

// connLimit bounds connections of each peer, and of all.
type connLimit struct {
	each *conns.PerKey[spiffe.ID]
	all  *conns.PerKey[struct{}]
}

func newConnLimit(each, all int) connLimit {
	return connLimit{conns.NewPerKey[spiffe.ID](each), conns.NewPerKey[struct{}](all)}
}

// acquire counts a connection of a peer in, unless there are too many.
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

// peers is the work of every peer that was let in since the start; there are as many as
// the allow lists name.
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

// peer limits the work of one. Its streams are taken no faster than that, and those not
// taken are what it may have open: QUIC's own limit slows it down, and nobody else.
type peer struct {
	opening chan struct{}
	held    datagram.Held

	mu   sync.Mutex
	rate int       // failures in a second, and as many at once
	paid time.Time // when what failed until now will have been paid for
}

// begin waits until the peer may open a stream. done must be called when it is open or
// has failed.
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

// pay waits while more has failed than is allowed.
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
