package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// patience is the time that QUIC has to connect before TCP is tried in parallel.
	patience = time.Second
	// doubtful replaces patience if an existing connection over QUIC has become silent.
	doubtful = 200 * time.Millisecond
	// photoFinish is the time for which a finished TCP connection still waits for QUIC, which is
	// preferred. A forwarder that has just started answers over both at almost the same time.
	photoFinish = 100 * time.Millisecond
)

// waitForQUIC returns the time that QUIC has to connect to an endpoint before TCP is tried. If the
// time is negative, TCP is tried before QUIC.
func (p *Pool) waitForQUIC(e *endpoint) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.paths[strings.Join(e.addresses, " ")]
	switch {
	case x != nil && x.blocked && time.Now().Before(x.until):
		return -1
	case e.current != nil && e.current.doubt == lossy:
		return -1
	case e.current != nil && e.current.doubt == silent:
		return doubtful
	}
	return patience
}

// dialEither connects over QUIC, or over TCP if the forwarder does not answer over UDP. If the
// forwarder answers over UDP, its answer is final, even a refusal.
func (p *Pool) dialEither(ctx context.Context, to destination, addresses []string) (won *conn, err error) {
	wait := p.waitForQUIC(to.endpoint)
	if wait < 0 {
		if won, err = p.race(ctx, to, addresses, p.dialTCP); err == nil || answered(err) {
			if err == nil {
				p.tookOver(to.endpoint, "")
			}
			return won, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dial := func(how func(context.Context, destination) (*conn, error)) *attempt {
		a := &attempt{done: make(chan struct{})}
		go func() {
			defer close(a.done)
			a.conn, a.err = p.race(ctx, to, addresses, how)
		}()
		return a
	}
	overQUIC, overTCP := dial(p.dialQUIC), (*attempt)(nil)
	defer func() {
		cancel()
		overQUIC.unless(won)
		overTCP.unless(won)
	}()
	timer, revived := time.NewTimer(max(wait, 0)), time.NewTicker(watchPeriod)
	defer timer.Stop()
	defer revived.Stop()
	var grace <-chan time.Time
	graceOver := false
	for {
		q, t := overQUIC.outcome(), overTCP.outcome()
		switch {
		case q == succeeded:
			return overQUIC.conn, nil
		case q == failed && answered(overQUIC.err):
			return nil, overQUIC.err
		case t == succeeded && q == pending && grace == nil:
			grace = time.After(photoFinish)
		case t == succeeded && (q == failed || graceOver):
			reason := fmt.Sprintf("no answer over UDP within %s", wait)
			if q == failed {
				reason = fmt.Sprintf("UDP: %v", overQUIC.err)
			}
			p.tookOver(to.endpoint, reason)
			return overTCP.conn, nil
		case q == failed && t == failed:
			return nil, fmt.Errorf("%w; %w", overQUIC.err, overTCP.err)
		case q == failed && overTCP == nil:
			overTCP = dial(p.dialTCP)
		}
		select {
		case <-overQUIC.end(q):
		case <-overTCP.end(t):
		case <-grace:
			graceOver = true
		case <-timer.C:
			if overTCP == nil {
				overTCP = dial(p.dialTCP)
			}
		case <-revived.C:
			if c := p.current(to.endpoint, to.svid, to.route.Transport); c != nil {
				return c, nil // the existing connection works again
			}
		}
	}
}

// attempt is an attempt to connect over one transport. A nil attempt has not begun.
type attempt struct {
	done chan struct{}
	conn *conn
	err  error
}

type outcome int

const (
	pending outcome = iota
	succeeded
	failed
)

func (a *attempt) outcome() outcome {
	if a == nil {
		return pending
	}
	select {
	case <-a.done:
	default:
		return pending
	}
	if a.err != nil {
		return failed
	}
	return succeeded
}

// end returns a channel that is closed when the attempt is over. It returns nil if the attempt has
// not begun or its outcome is known.
func (a *attempt) end(o outcome) <-chan struct{} {
	if a == nil || o != pending {
		return nil
	}
	return a.done
}

// unless waits for the end of the attempt and closes its connection. It keeps the connection open
// if this is the connection that won the race, which is given by won.
func (a *attempt) unless(won *conn) {
	if a == nil {
		return
	}
	<-a.done
	if a.err == nil && a.conn != won {
		discard(a.conn)
	}
}

// answered reports whether an error shows that the other side answered, so that trying another
// transport is useless.
func answered(err error) bool {
	var refused *RefusedError
	var impostor *ImpostorError
	return errors.As(err, &refused) || errors.As(err, &impostor)
}

// tookOver records why TCP is used for an endpoint. The reason is the measured fault of the
// previous connection if there was one, and the given reason otherwise. If the given reason is
// empty, the recorded reason stays.
func (p *Pool) tookOver(e *endpoint, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.current != nil && e.current.doubt != sure:
		reason = e.current.measured.reason
	case reason == "":
		reason = p.path(e).reason
	}
	p.block(e, reason)
}
