// Package conns bounds the connections that an HTTP server has open, and keeps room for
// those who have something to say: when all room is taken, a new connection takes that of
// one which has not been vouched for.
//
//	l := conns.Listen(inner, conns.Limit{Total: 1024, Prefix: 256})
//	hs := &http.Server{ConnContext: conns.Context, ConnState: conns.State}
//	hs.Serve(tls.NewListener(l, config))
//
// A handler that has verified its caller calls Vouch.
package conns

import (
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
}

// Listener is a net.Listener whose connections are within a limit. Accept never waits for
// room: of those from the network with the most connections nobody vouched for, it closes
// the one that has made no progress for the longest. Where all are vouched for, it closes
// the new one.
type Listener struct {
	net.Listener
	limit Limit

	mu   sync.Mutex
	open map[*conn]struct{}
}

// Listen bounds the connections that l accepts.
func Listen(l net.Listener, limit Limit) *Listener {
	return &Listener{Listener: l, limit: limit, open: map[*conn]struct{}{}}
}

// Accept accepts a connection for which there is room.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, from: Prefix(inner.RemoteAddr().String()), of: l, since: time.Now()}
		evicted, ok := l.admit(c)
		if evicted != nil {
			evicted.Conn.Close()
		}
		if ok {
			return c, nil
		}
		inner.Close()
	}
}

// admit finds room for c, and whose it was.
func (l *Listener) admit(c *conn) (evicted *conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, unvouched := 0, map[netip.Prefix]int{}
	for o := range l.open {
		if o.from == c.from {
			all++
		}
		if !o.vouched {
			unvouched[o.from]++
		}
	}
	switch {
	case all >= l.limit.Prefix:
		evicted = l.slowest(func(o *conn) bool { return o.from == c.from })
	case len(l.open) >= l.limit.Total:
		most := 0
		for _, n := range unvouched {
			most = max(most, n)
		}
		evicted = l.slowest(func(o *conn) bool { return unvouched[o.from] == most })
	default:
		l.open[c] = struct{}{}
		return nil, true
	}
	if evicted == nil {
		return nil, false
	}
	delete(l.open, evicted)
	l.open[c] = struct{}{}
	return evicted, true
}

// slowest is the one of some connections that has made no progress for the longest, of
// those that nobody vouched for.
func (l *Listener) slowest(of func(*conn) bool) (slowest *conn) {
	for o := range l.open {
		if !o.vouched && of(o) && (slowest == nil || o.since.Before(slowest.since)) {
			slowest = o
		}
	}
	return slowest
}

// conn gives back its room with Close.
type conn struct {
	net.Conn
	from netip.Prefix
	of   *Listener

	// Under of.mu:
	vouched bool
	since   time.Time // of its last progress
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
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

// State is for http.Server.ConnState: a request that came whole is progress.
func State(c net.Conn, _ http.ConnState) {
	if c := find(c); c != nil {
		c.of.mu.Lock()
		c.since = time.Now()
		c.of.mu.Unlock()
	}
}

// Vouch makes the connection of a request one that no other takes the room of: its caller
// is verified.
func Vouch(ctx context.Context) {
	if c, _ := ctx.Value(contextKey{}).(*conn); c != nil {
		c.of.mu.Lock()
		c.vouched = true
		c.of.mu.Unlock()
	}
}

// Prefix is the network of a peer's address: IPv4's whole address, and 64 bits of IPv6, in
// which a host has as many addresses as it likes. It is invalid where there is none.
func Prefix(peer string) netip.Prefix {
	addr, err := netip.ParseAddrPort(peer)
	if err != nil {
		return netip.Prefix{}
	}
	ip := addr.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits)
	return p
}
