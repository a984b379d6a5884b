package outbound

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/metrics"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
)

const (
	// maxFlows is how many flows of a uid one socket has; with one more the one that
	// is idle longest ends.
	maxFlows = 1024
	// silence is how long a sender who was refused is not heard again: it cannot be
	// told, and would ask with each datagram.
	silence = time.Second
)

// upstreamFailed are why a flow ends that was let through, and begins no other at once.
var upstreamFailed = []wire.Code{wire.Refused, wire.Unreachable, wire.Foreign}

// sender is who sends from one address to one service.
type sender struct {
	way way
	flow
	*datagram.Flow // nil: not let through
	silent         atomic.Bool
}

// over tells whether the next datagram begins a new flow.
func (x *sender) over() bool { return x.Flow != nil && x.Context().Err() != nil && !x.silent.Load() }

// used is when a datagram went last, after some beginning.
func (x *sender) used() time.Duration {
	if x.Flow == nil {
		return 0
	}
	return x.Used()
}

// begin lets a sender in, or not. The caller holds the lock.
func (l *socket) begin(w way, d destination) *sender {
	x := &sender{way: w, flow: d.flow}
	l.makeRoom(d.uid)
	l.flows[x.way] = x
	ctx, release, ok := l.server.admit(l.ctx, x.flow)
	if !ok {
		l.silence(x)
		return x
	}
	counted := l.server.Tally.Begin(metrics.Out, d.target, d.as)
	head := bytes.Clone(d.head)
	x.Flow = datagram.New(ctx, datagram.Local{
		Deliver: func(b []byte) {
			if len(head) > 0 {
				b = slices.Concat(head, b)
			}
			_, _ = l.conn.WriteToUDPAddrPort(b, w.from) // loopback takes it at once or not at all
		},
		Idle:      datagram.Idle,
		FromLocal: counted.Sent,
		ToLocal:   counted.Received,
		Dropped:   counted.Dropped,
		Held:      l.server.heldBy(d.uid),
	})
	end := func() { release(); counted.Done() }
	if !l.server.flows.Go(func(ctx context.Context) {
		defer end()
		defer context.AfterFunc(ctx, x.Stop)()
		l.run(x)
	}) {
		end()
	}
	return x
}

// heldBy is what all flows of a user hold. Only those are counted that the documents name.
func (s *Server) heldBy(uid uint32) *datagram.Held {
	held, _ := s.held.LoadOrStore(uid, new(datagram.Held))
	return held.(*datagram.Held)
}

// run carries a flow to its end.
func (l *socket) run(x *sender) {
	no := explain(l.carry(x))
	if no == nil {
		l.forget(x)
		return
	}
	l.server.refuse(x.flow, no)
	l.silence(x)
}

func (l *socket) carry(x *sender) error {
	st, err := l.server.dial(x.Context(), x.flow)
	if err != nil {
		return err
	}
	defer st.Release()
	x.Attach(st.Flows(), st.Stream)
	answered := false
	err = st.Explain(x.Run(func() error {
		err := answer(x.Context(), st)
		answered = err == nil
		return err
	}))
	var refused *transport.RefusedError
	was := errors.As(err, &refused)
	if answered && !(was && slices.Contains(upstreamFailed, refused.Code)) || was && refused.Code == wire.Stopping {
		return nil // it was let through; with the next datagram another begins
	}
	return err
}

// makeRoom keeps one user from taking all there is. The caller holds the lock.
func (l *socket) makeRoom(uid uint32) {
	if len(l.flows) < maxFlows {
		return
	}
	var idlest *sender
	n := 0
	for _, x := range l.flows {
		if x.uid != uid {
			continue
		}
		n++
		if idlest == nil || x.used() < idlest.used() {
			idlest = x
		}
	}
	if n >= maxFlows {
		l.drop(idlest)
	}
}

// drop ends a sender's flow. The caller holds the lock.
func (l *socket) drop(x *sender) {
	if x == nil {
		return
	}
	if x.Flow != nil {
		x.End(wire.Done)
	}
	if l.flows[x.way] == x {
		delete(l.flows, x.way)
	}
}

func (l *socket) forget(x *sender) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(x)
}

// silence keeps a sender without a flow for a while.
func (l *socket) silence(x *sender) {
	x.silent.Store(true)
	time.AfterFunc(silence, func() { l.forget(x) })
}
