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
	// maxSessions is the maximum number of UDP sessions of an account at one listener. If there is
	// one more, the session that has been idle for longest ends.
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

// makeRoom ends an account's session that has been idle for longest, if the account has too many
// sessions. This prevents one account from using up all sessions. The caller must hold the lock.
func (l *udpListener) makeRoom(uid uint32) {
	if len(l.sessions) < maxSessions {
		return
	}
	var idlest *session
	n := 0
	for _, x := range l.sessions {
		if x.by.UID != uid {
			continue
		}
		n++
		if idlest == nil || x.used() < idlest.used() {
			idlest = x
		}
	}
	if n >= maxSessions {
		l.drop(idlest)
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
