package outbound

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
)

const (
	// maxSessions is the maximum number of UDP sessions of an account at one listener, or of all
	// strangers at an entry. If there is one more, another session ends: see makeRoom.
	maxSessions = 1024
	// silence is the time for which the datagrams of a refused sender are dropped without another
	// check. UDP cannot report the refusal to the sender, and each datagram would be refused again.
	silence = time.Second
)

// upstreamFailed lists the codes that mean a failure of the upstream. After one of them, the
// sender's next datagrams begin no new session at once.
var upstreamFailed = []wire.Code{wire.Refused, wire.Unreachable, wire.Foreign}

// session carries the datagrams between one local address and one service.
type session struct {
	key sessionKey
	connection
	*datagram.Session // nil if the session was refused
	silent            atomic.Bool
	answered          atomic.Bool        // an answer was sent to the local address
	conversing        atomic.Bool        // the local address sent a datagram after an answer
	transport         document.Transport // set once the session has a stream
}

// over reports whether the session has ended, so that the next datagram begins a new one.
func (x *session) over() bool {
	return x.Session != nil && x.Context().Err() != nil && !x.silent.Load()
}

// used returns the time of the session's last datagram, measured from an arbitrary start.
func (x *session) used() time.Duration {
	if x.Session == nil {
		return 0
	}
	return x.Used()
}

// send sends a datagram to the service.
func (x *session) send(payload []byte) {
	if x.answered.Load() && !x.conversing.Load() {
		x.conversing.Store(true)
	}
	x.Send(payload)
}

// endsBefore reports whether a session ends before another session if there are too many. Sessions
// in which the sender went on after an answer end last. Among equals, the session that has been idle
// for longest ends. A session without an answer is no worse than one with an answer: otherwise new
// sessions would end each other.
//
// A sender with a forged address has to guess when the answer came and to send again. Nothing in UDP
// shows whether an answer arrived, so such a sender who sends twice ranks as a caller. Counting more
// rounds would only cost the sender as many datagrams, and a session that was busy once would
// outlive new ones that are in use. ICMP errors can be forged, and do not come from addresses that
// nobody has.
func (x *session) endsBefore(y *session) bool {
	if a, b := x.conversing.Load(), y.conversing.Load(); a != b {
		return b
	}
	return x.used() < y.used()
}

// begin starts a new session, or refuses it. The argument oob contains the control messages with
// which answers are sent. The caller must hold the lock.
func (l *udpListener) begin(k sessionKey, c connection, head, oob []byte) *session {
	x := &session{key: k, connection: c}
	l.makeRoom(c.by.UID)
	l.sessions[k] = x
	ctx, release, ok := l.server.admit(l.ctx, c)
	if !ok {
		c.leave()
		l.silence(x)
		return x
	}
	counted := l.server.Metrics.Begin(telemetry.Out, c.target.ID(), c.port, c.as)
	head = bytes.Clone(head)
	x.Session = datagram.New(ctx, datagram.Local{
		Deliver: func(b []byte) {
			if len(head) > 0 {
				b = slices.Concat(head, b)
			}
			x.answered.Store(true)                               // before the sender can go on
			_, _, _ = l.conn.WriteMsgUDPAddrPort(b, oob, k.from) // a datagram is accepted at once or lost
		},
		Idle:      datagram.Idle,
		FromLocal: counted.Sent,
		ToLocal:   counted.Received,
		Dropped:   counted.Dropped,
		Held:      l.server.heldBy(c),
		Limits:    c.limits,
	})
	end := func() {
		release()
		c.leave()
		counted.Done()
		c.logged(counted, x.transport, x.Code().String())
	}
	if !l.server.carrying.Go(func(ctx context.Context) {
		defer end()
		defer context.AfterFunc(ctx, x.Stop)()
		l.run(x, counted)
	}) {
		end()
	}
	return x
}

// heldBy returns the counter for the memory of the sessions of an account, or of all strangers at
// an entry. The manifest names all these accounts and entries, so their number is bounded.
func (s *Server) heldBy(c connection) *datagram.Held {
	var k any = c.by.UID
	if c.stranger.from.IsValid() {
		k = c.stranger.at
	}
	held, _ := s.held.LoadOrStore(k, new(datagram.Held))
	return held.(*datagram.Held)
}

// run carries the datagrams of a session until the session ends.
func (l *udpListener) run(x *session, counted telemetry.Conn) {
	denied := explain(l.join(x, counted))
	if denied == nil {
		l.forget(x)
		return
	}
	l.silence(x) // before the refusal is reported, so that the silence has already begun
	l.server.refuse(x.connection, denied)
}

// join opens a stream for a session and carries datagrams until either of them ends.
func (l *udpListener) join(x *session, counted telemetry.Conn) error {
	begun := time.Now()
	st, err := l.server.dial(x.Context(), x.connection)
	if err != nil {
		return err
	}
	defer st.Release()
	defer context.AfterFunc(st.Lost(), x.Stop)() // the next datagram begins a session over TCP
	x.transport = st.Transport()
	x.Attach(st.Mux(), st.Stream)
	answered := false
	err = st.Explain(x.Run(func() error {
		err := answer(x.Context(), st)
		if answered = err == nil; answered {
			counted.Opened(time.Since(begun))
			l.server.trace(x.connection, st, begun, nil)
		}
		return err
	}))
	var refused *transport.RefusedError
	was := errors.As(err, &refused)
	if answered && !(was && slices.Contains(upstreamFailed, refused.Code)) || was && refused.Code == wire.Stopping {
		return nil // the session was admitted; the next datagram begins another one
	}
	return err
}

// makeRoom ends a session of an account if the account has too many sessions. Strangers at an entry
// count as one account. This prevents one account from using up all sessions. The caller must hold
// the lock.
func (l *udpListener) makeRoom(uid uint32) {
	if len(l.sessions) < maxSessions {
		return
	}
	var first *session
	n := 0
	for _, x := range l.sessions {
		if x.by.UID != uid {
			continue
		}
		n++
		if first == nil || x.endsBefore(first) {
			first = x
		}
	}
	if n >= maxSessions {
		l.drop(first)
	}
}

// drop ends a session and forgets it. The caller must hold the lock.
func (l *udpListener) drop(x *session) {
	if x == nil {
		return
	}
	if x.Session != nil {
		x.End(wire.Done)
	}
	if l.sessions[x.key] == x {
		delete(l.sessions, x.key)
	}
}

func (l *udpListener) forget(x *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(x)
}

// silence makes the listener drop datagrams from a session's address for a while.
func (l *udpListener) silence(x *session) {
	x.silent.Store(true)
	time.AfterFunc(silence, func() { l.forget(x) })
}
