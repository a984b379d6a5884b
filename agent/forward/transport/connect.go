package transport

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
)

// connect returns a connection to the first endpoint that can be reached. It races the endpoints in
// the given order, and starts with the next one if an endpoint has not answered within
// conns.RaceStagger. It keeps connections that lose the race, because later streams may use them.
func (p *Pool) connect(ctx context.Context, r Route, svid *trust.SVID, order []*endpoint) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return conns.Race(ctx, order, func(ctx context.Context, e *endpoint) (*conn, error) {
		if e != order[0] && !p.waitAvoided(ctx, e) {
			return nil, ctx.Err()
		}
		select {
		case res := <-p.dial(r, svid, e):
			if res.Err != nil {
				return nil, res.Err
			}
			return res.Val.(*conn), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, func(*conn) {})
}

// dial connects to an endpoint. Concurrent calls for the same endpoint share one attempt.
func (p *Pool) dial(r Route, svid *trust.SVID, e *endpoint) <-chan singleflight.Result {
	key := fmt.Sprint(r.Caller, r.Target.ID(), r.Transport, e.addresses, e.via)
	return p.dials.DoChan(key, func() (any, error) { return p.connectTo(r, svid, e) })
}

// waitAvoided waits before an avoided endpoint is tried, which gives the other endpoints a head
// start. It returns false if the race ended in the meantime.
func (p *Pool) waitAvoided(ctx context.Context, e *endpoint) bool {
	p.mu.Lock()
	avoided := e.avoided(time.Now())
	p.mu.Unlock()
	if !avoided {
		return true
	}
	select {
	case <-time.After(lastResort):
		return true
	case <-ctx.Done():
		return false
	}
}

// connectTo returns the existing connection to an endpoint, or makes one. It races all addresses of
// the endpoint.
func (p *Pool) connectTo(r Route, svid *trust.SVID, e *endpoint) (*conn, error) {
	if c := p.current(e, svid, r.Transport); c != nil {
		return c, nil
	}
	if !p.begin() {
		return nil, p.ctx.Err()
	}
	defer p.busy.Done()
	ctx, cancel := context.WithTimeout(p.ctx, dialTimeout)
	defer cancel()
	to := destination{route: r, svid: svid, endpoint: e}
	addresses := p.connecting(e)
	var won *conn
	var err error
	switch {
	case e.via != nil:
		won, err = p.dialVia(ctx, to)
	case e.punched != nil:
		won, err = p.dialPunched(ctx, to)
	case r.Transport == document.OverQUIC:
		won, err = p.race(ctx, to, addresses, p.dialQUIC)
	case r.Transport == document.OverTCP:
		won, err = p.race(ctx, to, addresses, p.dialTCP)
	default:
		won, err = p.dialEither(ctx, to, addresses)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.connecting = time.Time{}
	if err != nil {
		e.fail(time.Now())
		return nil, err
	}
	if won.transport == document.OverQUIC {
		p.pass(e) // regardless of the route's transport
	}
	if won == e.current {
		return won, nil
	}
	return won, p.install(r, won)
}

// race connects to the first address of an endpoint that answers.
func (p *Pool) race(ctx context.Context, to destination, addresses []string, dial func(context.Context, destination) (*conn, error)) (*conn, error) {
	return conns.Race(ctx, addresses, func(ctx context.Context, address string) (*conn, error) {
		found, err := conns.Resolve(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("endpoint %q: %w", address, err)
		}
		return conns.Race(ctx, p.sort(to.endpoint, found), func(ctx context.Context, at netip.AddrPort) (*conn, error) {
			to := to
			to.address, to.at = address, at
			return dial(ctx, to)
		}, discard)
	}, discard)
}

// discard closes a connection that nobody uses.
func discard(c *conn) { closeWith(c.link, wire.Done) }

// connecting records that a connection to an endpoint is being made. It returns the addresses of
// the endpoint in the order in which they are tried.
func (p *Pool) connecting(e *endpoint) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.connecting = time.Now()
	return e.ordered()
}

// begin counts a connection attempt, so that Close waits for the end of the attempt. It returns
// false if the pool is closed.
func (p *Pool) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.busy.Add(1)
	return true
}

// sort moves the resolved address that connected last to the front.
func (p *Pool) sort(e *endpoint, found []netip.AddrPort) []netip.AddrPort {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(found, e.at); i > 0 {
		found = slices.Insert(slices.Delete(found, i, i+1), 0, e.at)
	}
	return found
}

// install makes a new connection the current one of its endpoint. It closes the connection and
// returns an error if the pool was closed, or if the trust roots no longer accept the peer. The
// caller holds the lock.
func (p *Pool) install(r Route, c *conn) error {
	if p.ctx.Err() != nil {
		closeWith(c.link, wire.Stopping)
		return p.ctx.Err()
	}
	if !c.trusted(p.identities().Trust) {
		closeWith(c.link, wire.Untrusted)
		return fmt.Errorf("%s: trust roots changed while it connected", c.peer.ID)
	}
	e := c.endpoint
	if old := e.current; old != nil {
		if old.doubt == silent && c.transport == document.OverTCP {
			old.abandon()
		} else {
			old.retire()
		}
	}
	row := usage.Row{Direction: telemetry.Out, Target: c.peer.ID, Caller: r.Caller, Transport: c.path(), Remote: c.address, Allowed: MaxStreams}
	var remove func()
	c.usage, remove = p.usage.Add(row, c.stats, &c.mux.Read, func() { closeWith(c.link, wire.Busy) })
	e.current = c
	if e.punched != nil {
		e.punched.conns++
	}
	p.conns[c] = struct{}{}
	p.busy.Add(1)
	context.AfterFunc(c.Context(), func() {
		remove()
		p.forget(c)
	})
	if l, ok := c.link.(*quicLink); ok {
		p.busy.Go(func() { p.receive(c, l) })
	}
	if c.transport == document.OverTCP && r.Transport == document.AnyTransport {
		p.retryLater(c)
	}
	return nil
}

// receive accepts the unidirectional streams of the publishing side, which carry returned checks or
// wire.Leave.
func (p *Pool) receive(c *conn, l *quicLink) {
	for {
		in, err := l.AcceptUniStream(c.Context())
		if err != nil {
			return
		}
		l.tasks.Go(func() { l.receiveChecks(in, func() { p.leave(c) }) })
	}
}

// leave retires a connection because the publishing side asked for it. New streams then use another
// connection.
func (p *Pool) leave(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.endpoint.current == c {
		c.endpoint.current = nil
	}
	c.retire()
}

// Recheck closes the connections that this host may no longer use, because the current trust roots
// do not accept the target or because the caller's SVID is revoked. It must be called after each
// change of the roots or of their revocation list.
func (p *Pool) Recheck() {
	p.mu.Lock()
	defer p.mu.Unlock()
	trust := p.identities().Trust
	for c := range p.conns {
		if !c.trusted(trust) || trust.Revocations().CheckChain([]*x509.Certificate{c.svid.Cert.Leaf}, c.svid.ID) != nil {
			closeWith(c.link, wire.Untrusted)
		}
	}
}
