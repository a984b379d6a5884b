// Package conns opens connections and limits how many are open. Race connects to a program that has
// several addresses. Listen limits the connections of an HTTP server and reserves room for verified
// callers: if all room is taken, a new connection replaces one whose caller is not verified.
//
//	l := conns.Listen(inner, conns.Limit{Total: 1024, Prefix: 256})
//	hs := &http.Server{ConnContext: conns.Context, ConnState: conns.State}
//	conns.Serve(ctx, hs, tls.NewListener(l, config))
//
// Call Begin when a TLS handshake begins. The Listener then counts the connection apart from silent
// connections. A handler that has verified its caller calls Vouch. For connections that do not
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

// Limit bounds the number of open connections of a Listener.
type Limit struct {
	Total  int
	Prefix int // connections from one network, as the function Prefix returns it
	Known  int // additional connections of verified callers; zero for none

	// Turns bounds the number of connections that are between the beginning of their handshake and
	// their first answer. Further connections wait in order of arrival. Zero means no bound.
	Turns int

	// Wait is the longest time that a connection may wait for its turn. If the Listener estimates a
	// longer wait, Begin turns the connection away. Zero means no bound.
	Wait time.Duration
}

// Listener is a net.Listener that keeps the number of open connections within a Limit. Accept never
// waits for room. If the limit is reached, Accept finds the network with the most unverified
// connections, and closes the connection from there that has made no progress for the longest time.
// If all connections are verified, Accept closes the new connection.
type Listener struct {
	net.Listener

	mu    sync.Mutex
	hall  room // accepted connections
	begun room // connections after Begin
	known room // connections after Vouch
	queue queue
}

// Listen returns a Listener that limits the connections accepted from l. Connections for which
// Begin was called have a separate limit of the same size.
func Listen(l net.Listener, limit Limit) *Listener {
	n := &Listener{Listener: l, hall: newRoom(limit), begun: newRoom(limit), known: newRoom(limit), queue: newQueue(limit)}
	n.Resize(limit)
	return n
}

// Resize changes the limit for new connections. It does not change Turns and Wait.
func (l *Listener) Resize(limit Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hall.limit, l.begun.limit = limit, limit
	l.known.limit = Limit{Total: limit.Known, Prefix: limit.Known}
}

// Accept waits for the next connection and returns it, if the limit has room for it.
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

// move moves c from one room to another, if necessary by closing another connection there. If all
// connections in the other room are verified, it closes c. It reports whether c was in from and now
// is in to.
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

// conn is a connection of a Listener. Close frees its room.
type conn struct {
	net.Conn
	from netip.Prefix
	of   *Listener

	// Under of.mu:
	in    *room         // nil once it has left the listener
	since time.Time     // time of its last progress
	place *list.Element // entry in its network, nil if the caller is verified or the connection has left the listener
	began time.Time     // beginning of its turn, zero once it has been answered
	turn  *time.Timer   // ends its turn, nil without one
}

func (c *conn) Close() error {
	c.leave()
	c.endTurn()
	return c.Conn.Close()
}

// NetConn returns the underlying connection, as accepted by the inner listener.
func (c *conn) NetConn() net.Conn { return c.Conn }

// leave removes c from its room, if it is in one.
func (c *conn) leave() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.in != nil {
		c.in.remove(c)
	}
}

// EndTurn lets the next waiting connection begin before the current request is answered. A handler
// calls it when its answer has to wait, for example for a change.
func EndTurn(ctx context.Context) {
	if c, _ := ctx.Value(contextKey{}).(*conn); c != nil {
		c.endTurn()
	}
}

// Release makes a Listener stop counting a connection. Call it once the peer is verified and the
// connection is counted elsewhere.
func Release(c net.Conn) {
	if found := find(c); found != nil {
		found.leave()
	}
}

// find returns the conn below c, which may be a TLS connection, or nil if there is none.
func find(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	found, _ := c.(*conn)
	return found
}

type contextKey struct{}

// Context stores the connection in ctx, where Vouch and EndTurn find it. Use it as
// http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, find(c))
}

// State tracks the progress of connections for a Listener. Use it as http.Server.ConnState. A
// complete request counts as progress, and an answer ends the connection's turn.
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

// Vouch marks the caller of a request as verified. From then on the Listener does not close the
// caller's connection to make room for another.
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
