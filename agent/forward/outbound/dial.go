package outbound

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/splice"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
)

const (
	// openTimeout is the maximum time for opening a stream. The wait for the far side's answer has
	// the same limit.
	openTimeout = 15 * time.Second
	// retryPause is the delay between two requests to a forwarder that is being restarted.
	retryPause = 100 * time.Millisecond
)

// direct carries a local connection to the service of its listener. It sends bytes of the process
// before the far side has answered.
func (s *Server) direct(ctx context.Context, local *net.TCPConn, c connection, e *early, ends *handover.Ends) {
	begun := time.Now()
	ctx, end, ok := s.admit(ctx, c)
	if !ok {
		reset(local)
		return
	}
	ends.Add(end)
	counted := s.Metrics.Begin(telemetry.Out, c.target.ID(), c.port, c.as)
	ends.Add(counted.Done)
	st, err := s.request(ctx, c, e)
	s.trace(c, st, begun, err)
	if err != nil {
		denied := explain(err)
		s.refuse(c, denied)
		if denied != nil {
			c.logged(counted, "", denied.reason)
		}
		reset(local)
		return
	}
	counted.Opened(time.Since(begun))
	counted.Sent.Add(int64(len(e.kept)))
	over := st.Transport()
	carry(ctx, local, st, counted, c.limits, ends, func(err error) {
		c.logged(counted, over, splice.Reason(err, "caller", "service"))
	})
}

// carry carries a local connection on a stream that the far side has accepted. It limits the
// connection to the given Share, and calls the function done when the connection has ended.
func carry(ctx context.Context, local *net.TCPConn, st *transport.Stream, counted telemetry.Conn, limits *acl.Share, ends *handover.Ends, done func(error)) {
	ends.Add(st.Release)
	ends.Keep()
	splice.Start(ctx, splice.Pair{
		Local: local, Stream: st.Stream, FromLocal: counted.Sent, ToLocal: counted.Received, Read: &st.Usage().Read, Limits: limits,
	}, func(err error) {
		done(err)
		ends.Run()
	})
}

// admit checks whether a connection is allowed, both by the rules from the time when it began and
// by the current rules. The returned context ends when new rules deny the connection.
func (s *Server) admit(ctx context.Context, c connection) (context.Context, func(), bool) {
	if denied := c.rules.check(c.connKey); denied != nil {
		s.refuse(c, denied)
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	changed := func() {
		s.refuse(c, &refusal{wire.Denied.String(), "the manifest changed"})
		cancel()
	}
	release, ok := s.enforcer.Admit(c.connKey, changed)
	if !ok {
		changed()
		return nil, nil, false
	}
	return ctx, func() { release(); cancel() }, true
}

// request opens a stream and waits until the far side serves it. It tries again if the stream was
// not served. If the upstream of one endpoint fails, it tries another endpoint at once. If a
// forwarder is stopping, or a relay has lost it, request repeats the request for a while, until the
// next process is running.
func (s *Server) request(ctx context.Context, c connection, e *early) (*transport.Stream, error) {
	until := time.Now().Add(openTimeout)
	others := len(c.rules.reach[c.serviceKey].Endpoints) + len(c.rules.via[c.serviceKey]) - 1
	for {
		st, err := s.requestOnce(ctx, c, e)
		unsent := e == nil || len(e.kept) == 0 // no data was sent that could have been served
		if errors.Is(err, transport.ErrLost) && unsent {
			continue
		}
		cut := errors.Is(err, transport.ErrCut) && unsent
		var refused *transport.RefusedError
		if !cut && !errors.As(err, &refused) || time.Now().After(until) {
			return st, err
		}
		switch {
		case cut:
		case slices.Contains(upstreamFailed, refused.Code) && others > 0:
			others--
			continue
		case refused.Code != wire.Stopping:
			return nil, err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Server) requestOnce(ctx context.Context, c connection, e *early) (*transport.Stream, error) {
	st, err := s.dial(ctx, c)
	if err != nil {
		return nil, err
	}
	if e == nil {
		err = answer(ctx, st)
	} else {
		err = e.sendUntilAnswer(ctx, st)
	}
	if err != nil {
		err = s.traced(st, err)
		st.Release()
		return nil, err
	}
	return st, nil
}

// dial opens a stream to the connection's target.
func (s *Server) dial(ctx context.Context, c connection) (*transport.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	carries := wire.TCP
	route := c.rules.route(c.serviceKey, c.as)
	switch {
	case c.protocol == document.UDP:
		carries = wire.UDP
	case c.announce:
		carries, route.Origin = wire.Entered, c.origin
	}
	return s.Pool.Open(ctx, route, carries)
}

// answer waits until the far side has accepted or refused a stream.
func answer(ctx context.Context, st *transport.Stream) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return st.Answer(ctx)
}
