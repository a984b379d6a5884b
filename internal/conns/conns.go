// Package conns opens and bounds connections. Race connects to a program that has several addresses. Listen bounds the
// connections that an HTTP server has open, and keeps room for those whose caller is verified: when all room is taken,
// a new connection takes that of one which has not been vouched for.
//
//	l := conns.Listen(inner, conns.Limit{Total: 1024, Prefix: 256})
//	hs := &http.Server{ConnContext: conns.Context, ConnState: conns.State}
//	conns.Serve(ctx, hs, tls.NewListener(l, config))
//
// Begin, when TLS begins, keeps a connection apart from silent ones. A handler that has
// verified its caller calls Vouch. Where connections carry no HTTP, Release takes those out
// whose peer is verified.
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

// Limit of open connections.
type Limit struct {
	Total  int
	Prefix int // of one network, as Prefix has it
	Known  int // beside those, of verified callers; zero for none

	// Turns bounds the connections between what begins a handshake and the first answer.
	// Others wait in the order in which they began. Zero for no bound.
	Turns int

	// Wait is the longest time that a connection is left waiting for its turn, as the listener
	// estimates it: beyond that Begin turns it away. Zero for no bound.
	Wait time.Duration
}

// Listener is a net.Listener whose connections are within a limit. Accept never waits for
// room: of those from the network with the most connections nobody vouched for, it closes
// the one that has made no progress for the longest. Where all are vouched for, it closes
// the new one.
type Listener struct {
	net.Listener

	mu    sync.Mutex
	hall  room // of those who come
	begun room // of those who called Begin
	known room // of those who called Vouch
	queue queue
}

// Listen bounds the connections that l accepts, and as many that have begun.
func Listen(l net.Listener, limit Limit) *Listener {
	n := &Listener{Listener: l, hall: newRoom(limit), begun: newRoom(limit), known: newRoom(limit), queue: newQueue(limit)}
	n.Resize(limit)
	return n
}

// Resize changes the limit, but for Turns and Wait, for connections that come.
func (l *Listener) Resize(limit Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hall.limit, l.begun.limit = limit, limit
	l.known.limit = Limit{Total: limit.Known, Prefix: limit.Known}
}

// Accept accepts a connection for which there is room.
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

// move takes c from one room to another, perhaps in place of one that it closes; where all
// there are vouched for, it closes c. It reports whether c was in the one and is in the other.
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

// conn gives back its room with Close.
type conn struct {
	net.Conn
	from netip.Prefix
	of   *Listener

	// Under of.mu:
	in    *room         // nil when it is out of the listener
	since time.Time     // of its last progress
	place *list.Element // in its network, nil when it is vouched for or out of the listener
	began time.Time     // its turn, until it is answered
	turn  *time.Timer   // that ends its turn, nil for none
}

func (c *conn) Close() error {
	c.leave()
	c.endTurn()
	return c.Conn.Close()
}

// NetConn is the connection that was accepted.
func (c *conn) NetConn() net.Conn { return c.Conn }

// leave takes c out of its room, where it is in one.
func (c *conn) leave() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.in != nil {
		c.in.remove(c)
	}
}

// EndTurn ends the turn of the connection of a request before its answer, which waits for
// something else.
func EndTurn(ctx context.Context) {
	if c, _ := ctx.Value(contextKey{}).(*conn); c != nil {
		c.endTurn()
	}
}

// Release takes a connection of a Listener out of its limit: its peer is verified, and
// counted elsewhere.
func Release(c net.Conn) {
	if found := find(c); found != nil {
		found.leave()
	}
}

// find is the connection of a Listener that c, perhaps TLS, goes over.
func find(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	found, _ := c.(*conn)
	return found
}

type contextKey struct{}

// Context is for http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, find(c))
}

// State is for http.Server.ConnState: a request that came whole is progress, and an answer
// ends a turn.
func State(c net.Conn, to http.ConnState) {
	if c := find(c); c != nil {
		if to == http.StateIdle || to == http.StateClosed {
			c.endTurn()
		}
		c.of.mu.Lock()
		c.progress()
		c.of.mu.Unlock()
	}
}

// Vouch makes the connection of a request one that no other takes the room of: its caller
// is verified.
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
