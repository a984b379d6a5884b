package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/logsum"
	"github.com/florete/florete/agent/forward/metrics"
	"github.com/florete/florete/agent/forward/splice"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
)

// openTimeout bounds each of what comes first: a stream, and the far side's answer.
const openTimeout = 15 * time.Second

// direct carries a connection to the service whose listener it came to. Bytes
// from the process flow before the far side has answered.
func (s *Server) direct(ctx context.Context, conn *net.TCPConn, f flow) {
	ctx, end, ok := s.admit(ctx, f)
	if !ok {
		reset(conn)
		return
	}
	defer end()
	counted := s.Tally.Begin(metrics.Out, f.target, f.as)
	defer counted.Done()
	e := newEarly(conn)
	defer e.release()
	st, err := s.request(ctx, f, e)
	if err != nil {
		s.refuse(f, explain(err))
		reset(conn)
		return
	}
	defer st.Release()
	counted.Sent.Add(int64(len(e.kept)))
	e.release()
	_ = splice.Run(ctx, splice.Pair{Local: conn, Stream: st.Stream, FromLocal: counted.Sent, ToLocal: counted.Received, Read: &st.Usage().Read})
}

// admit asks the gate; a new rule that denies the flow ends the context.
func (s *Server) admit(ctx context.Context, f flow) (context.Context, func(), bool) {
	ctx, cancel := context.WithCancel(ctx)
	release, ok := s.gate.Admit(f, func() {
		s.refuse(f, &refusal{"denied", "the manifest changed"})
		cancel()
	})
	if !ok {
		cancel()
		if no := s.rules.Load().check(f); no != nil {
			s.refuse(f, no)
		}
		return nil, nil, false
	}
	return ctx, func() { release(); cancel() }, true
}

// dial opens a stream to the flow's target.
func (s *Server) dial(ctx context.Context, f flow) (*transport.Stream, error) {
	target, err := florete.Dial(f.target)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	as := wire.TCP
	if f.protocol == florete.UDP {
		as = wire.UDP
	}
	return s.Pool.Open(ctx, transport.Route{Caller: f.as, Target: target, Endpoints: s.rules.Load().reach[f.target].Endpoints}, as)
}

// answer waits for the far side's answer to a stream.
func answer(ctx context.Context, st *transport.Stream) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return st.Answer(ctx)
}

// explain puts an error in the words that refusals are counted by; nil when
// nothing was refused.
func explain(err error) *refusal {
	var refused *transport.RefusedError
	var impostor *transport.ImpostorError
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return nil
	case errors.As(err, &refused) && refused.Code == wire.Reset:
		return nil
	case errors.As(err, &refused):
		return &refusal{refused.Code.String(), err.Error()}
	case errors.As(err, &impostor):
		return &refusal{"impostor", err.Error()}
	case errors.Is(err, transport.ErrNoIdentity):
		return &refusal{"no-identity", err.Error()}
	case errors.Is(err, transport.ErrFull):
		return &refusal{"no-stream", err.Error()}
	case errors.Is(err, transport.ErrExpired):
		return &refusal{"expired", err.Error()}
	}
	return &refusal{"no-connection", err.Error()}
}

// refuse counts a refusal.
func (s *Server) refuse(f flow, no *refusal) {
	if no == nil {
		return
	}
	r := metrics.Refusal{
		Time: time.Now(), Side: metrics.Out, Reason: no.reason,
		Target: f.target.String(), Peer: f.as.String(), Detail: fmt.Sprintf("uid %d: %s", f.uid, no.detail),
	}
	s.Tally.Refuse(r)
	_, known := s.rules.Load().callers.Identity(f.uid)
	s.refused.Warn(logsum.Key{Reason: no.reason, Who: fmt.Sprintf("uid %d", f.uid), Known: known}, "refused", "side", r.Side, "reason", r.Reason, "target", r.Target, "peer", r.Peer, "detail", r.Detail)
}
