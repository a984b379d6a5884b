// Package conns opens connections, and limits the number of open connections. Race connects to a
// program that has several addresses. Listen limits the connections of an HTTP server. It reserves
// room for verified callers: if all room is taken, a new connection replaces a connection whose
// caller is not verified.
//
//	l := conns.Listen(inner, conns.Limit{Total: 1024, Prefix: 256})
//	hs := &http.Server{ConnContext: conns.Context, ConnState: conns.State}
//	conns.Serve(ctx, hs, tls.NewListener(l, config))
//
// Call Begin when a TLS handshake begins. The Listener then no longer counts the connection among
// the silent ones. A handler that has verified its caller calls Vouch. If a connection does not
// carry HTTP, call Release once the peer is verified.
package conns

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limit contains the maximum numbers of open connections of a Listener.
type Limit struct {
	Total  int
	Prefix int // connections from one network; the function Prefix returns the network of a peer
	Known  int // additional connections of verified callers; zero for none

	// Turns is the maximum number of connections whose handshake has begun and whose first request
	// has not been answered. Further connections wait in the order in which they arrive. Zero means
	// no limit.
	Turns int

	// Wait is the longest time that a connection may wait for its turn. If the Listener expects a
	// longer wait, Begin turns the connection away. Zero means no limit.
	Wait time.Duration
}

// Listener is a net.Listener that keeps the number of open connections within a Limit. Accept never
// waits for room. When the limit is reached, Accept closes a connection of a caller that is not
// verified. In the network with the most such connections, it chooses the one that has made no
// progress for the longest time. If all callers are verified, Accept closes the new connection.
type Listener struct {
	net.Listener

	mu    sync.Mutex
	hall  room // accepted connections
	begun room // connections after Begin
	known room // connections after Vouch
	queue queue
}

// Listen returns a Listener that limits the connections accepted from l. The limit applies
// separately to connections for which Begin was called, and to those for which it was not called
// yet.
func Listen(l net.Listener, limit Limit) *Listener {
	n := &Listener{Listener: l, hall: newRoom(limit), begun: newRoom(limit), known: newRoom(limit), queue: newQueue(limit)}
	n.Resize(limit)
	return n
}

// Resize changes the limit for new connections. The fields Turns and Wait of the limit are ignored
// and keep their values.
func (l *Listener) Resize(limit Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hall.limit, l.begun.limit = limit, limit
	l.known.limit = Limit{Total: limit.Known, Prefix: limit.Known}
}

// Accept waits for the next connection for which the limit has room, and returns it.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, from: Prefix(inner.RemoteAddr().String()), of: l}
		if l.move(c, nil, &l.hall) {
			return c, nil
		}
	}
}

// move moves the connection c from one room to another. If the other room is full, move closes
// another connection there. If all connections there have verified callers, it closes c. It reports
// whether c was in the room from and is now in the room to.
func (l *Listener) move(c *conn, from, to *room) bool {
	l.mu.Lock()
	if c.in != from {
		l.mu.Unlock()
		return false
	}
	if from != nil {
		from.remove(c)
	}
	evicted, ok := to.admit(c)
	l.mu.Unlock()
	if evicted != nil {
		evicted.Conn.Close()
	}
	if !ok {
		c.Conn.Close()
	}
	return ok
}

// conn is a connection that a Listener accepted. Close frees its place in its room.
type conn struct {
	net.Conn
	from netip.Prefix
	of   *Listener

	// Under of.mu:
	in    *room         // nil once it has left the listener
	since time.Time     // time of its last progress
	place *list.Element // entry in its network; nil if the caller is verified, or if the connection has left the listener
	began time.Time     // beginning of its turn; zero once the connection has been answered
	turn  *time.Timer   // ends its turn; nil if the connection has no turn
	lasts time.Duration // longest duration of its turn
	keeps bool          // its turn continues after the next answer, see KeepTurn
}

func (c *conn) Close() error {
	c.leave()
	c.endTurn()
	return c.Conn.Close()
}

// NetConn returns the underlying connection, as the inner listener accepted it.
func (c *conn) NetConn() net.Conn { return c.Conn }

// leave removes the connection from its room, if it is in a room.
func (c *conn) leave() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.in != nil {
		c.in.remove(c)
	}
}

// EndTurn lets the next waiting connection begin before a request on this connection is answered.
// It has an effect only if the Listener limits how many connections are served at a time
// (Limit.Turns). A handler calls it, with the context of the request, if its answer has to wait.
func EndTurn(ctx context.Context) {
	if c, _ := ctx.Value(contextKey{}).(*conn); c != nil {
		c.endTurn()
	}
}

// KeepTurn makes the connection of a request keep its turn after the answer, so that the next
// request on it is served before the handshakes of others begin. A handler calls it, with the
// context of the request, if its answer is only the first of two that the peer needs. The time
// limit of the turn stays the same.
func KeepTurn(ctx context.Context) {
	if c, _ := ctx.Value(contextKey{}).(*conn); c != nil {
		c.of.mu.Lock()
		c.keeps = true
		c.of.mu.Unlock()
	}
}

// HoldTurn stops the time limit of a connection's turn until the returned function is called. A
// handler calls it, with the context of the request, before the server itself makes the peer wait.
// Otherwise others would take turns meanwhile, and the requests of all of them would wait.
func HoldTurn(ctx context.Context) (resume func()) {
	c, _ := ctx.Value(contextKey{}).(*conn)
	if c == nil {
		return func() {}
	}
	limit := func(set func()) {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		if c.turn != nil {
			set()
		}
	}
	limit(func() { c.turn.Stop() })
	return func() { limit(func() { c.turn.Reset(c.lasts) }) }
}

// Release makes the Listener stop counting a connection. It is called when the peer is verified and
// the connection is counted elsewhere.
func Release(c net.Conn) {
	if found := find(c); found != nil {
		found.leave()
	}
}

// find returns the Listener's connection below c, which may be a TLS connection. It returns nil if
// there is none.
func find(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	found, _ := c.(*conn)
	return found
}

type contextKey struct{}

// Context returns a copy of ctx that contains the connection, so that functions such as Vouch and
// EndTurn can find it. Use it as http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, find(c))
}

// State tells the Listener of a connection about its progress. Use it as http.Server.ConnState. A
// complete request counts as progress. After an answer, the next waiting connection may begin (see
// Limit.Turns and KeepTurn).
func State(c net.Conn, to http.ConnState) {
	if c := find(c); c != nil {
		if to == http.StateIdle && !c.kept() || to == http.StateClosed {
			c.endTurn()
		}
		c.of.mu.Lock()
		c.progress()
		c.of.mu.Unlock()
	}
}

// Vouch marks the caller of a request as verified. The argument is the context of the request. From
// then on, the Listener does not close the caller's connection to make room for others.
func Vouch(ctx context.Context) {
	if c, _ := ctx.Value(contextKey{}).(*conn); c != nil {
		c.of.mu.Lock()
		if known := &c.of.known; c.in != nil && c.in != known && known.open < known.limit.Total {
			c.in.remove(c)
			known.add(c)
		}
		c.vouch()
		c.of.mu.Unlock()
	}
}
