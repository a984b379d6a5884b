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

// Limits limits the resources that other hosts may use at this one. A field that is zero has its
// default value.
type Limits struct {
	Connections int // connections of one peer over QUIC
	Total       int // connections of all peers over QUIC
	Streams     int // open streams of one peer on all its connections
	Opening     int // streams of one peer whose upstream is not connected yet; further ones wait
	Failures    int // streams of one peer per second that fail: refused, or ended before the answer

	OverTCP      int // connections of one peer over TCP, which carry one stream at a time
	TotalOverTCP int // connections of all peers over TCP
}

// An idle connection over QUIC uses 80 KiB, so all connections of a peer use at most 40 MiB. A
// stream uses one file and 20 KiB, and 64 KiB of kernel memory while it is blocked. A peer may use
// an eighth of the files that a forwarder may open (LimitNOFILE=). A connection over TCP uses one
// file and 40 KiB.
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

// connLimit limits the number of connections, for each peer and for all peers together.
type connLimit struct {
	each *conns.PerKey[spiffe.ID]
	all  *conns.PerKey[struct{}]
}

func newConnLimit(each, all int) connLimit {
	return connLimit{conns.NewPerKey[spiffe.ID](each), conns.NewPerKey[struct{}](all)}
}

// acquire counts a connection of a peer. It returns an error if the peer, or all peers together,
// have too many.
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

// peers contains the load of every peer since the start. There are at most as many peers as the
// allow lists name.
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

// peer limits the load that one peer causes. When the limit is reached, further streams of the peer
// are not accepted. They count towards QUIC's limit of open streams, so only this peer is slowed
// down.
type peer struct {
	opening chan struct{}
	held    datagram.Held

	mu   sync.Mutex
	rate int       // failures per second, and size of a burst
	paid time.Time // time at which all failures so far are paid for
}

// begin waits until the peer may open a stream. The caller must call the function done when the
// stream is open or has failed.
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

// pay waits as long as the peer has had more failures than its rate allows.
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
