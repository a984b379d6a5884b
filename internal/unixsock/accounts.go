package unixsock

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
)

// Limits of the connections that Serve accepts.
const (
	perAccount = 64
	total      = 1024
)

// Numbers of connections. All accounts that the policy does not name share the number strangers,
// because one account may have 65,536 subordinate accounts (subuid(5)). Each of these accounts may
// have strangerEach. An account that the policy names must leave the last quarter of the total to
// others if it already has a few connections.
const (
	strangers    = 64
	strangerEach = 16
	few          = 16
)

// Limits contains the maximum numbers of connections to a Unix socket. Each account that the policy
// names can have as many connections as the field Each says, and all these accounts together as
// many as the field Total says. All other accounts share a fixed number of connections. Root counts
// as a named account.
type Limits struct {
	Each, Total int

	// Named reports whether the policy names the account uid, or the process that made the
	// connection c.
	Named func(c *net.UnixConn, uid uint32) bool
}

// Listen returns a listener that accepts the connections of ln, and closes those that exceed the
// limits. The accepted connections implement syscall.Conn.
func (l Limits) Listen(ln net.Listener) net.Listener {
	return &listener{Listener: ln, limits: l, held: map[uint32]int{}}
}

type listener struct {
	net.Listener
	limits Limits

	mu        sync.Mutex
	held      map[uint32]int // connections of each account; includes those of processes that are not named
	named     int            // connections of named accounts and processes
	strangers int
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		unix := conn.(*net.UnixConn)
		if peer, err := Peer(unix); err == nil {
			uid := peer.Uid
			named := uid == 0 || l.limits.Named(unix, uid)
			if l.acquire(uid, named) {
				return &client{unix, uid, func() { l.release(uid, named) }}, nil
			}
		}
		conn.Close()
	}
}

func (l *listener) acquire(uid uint32, named bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held[uid]
	switch {
	case !named:
		if held >= strangerEach || l.strangers >= strangers {
			return false
		}
		l.strangers++
	case held >= l.limits.Each, l.named >= l.limits.Total, held >= few && l.named >= l.limits.Total*3/4:
		return false
	default:
		l.named++
	}
	l.held[uid]++
	return true
}

func (l *listener) release(uid uint32, named bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if named {
		l.named--
	} else {
		l.strangers--
	}
	if l.held[uid]--; l.held[uid] == 0 {
		delete(l.held, uid)
	}
}

// client is a connection from a process of the account uid.
type client struct {
	*net.UnixConn
	uid     uint32
	release func()
}

func (c *client) Close() error {
	err := c.UnixConn.Close()
	if err == nil { // a second Close fails
		c.release()
	}
	return err
}

type uidKey struct{}

// UID returns the uid of the account that has sent a request. It must be called only by handlers
// that Serve runs, and panics otherwise.
func UID(r *http.Request) uint32 { return r.Context().Value(uidKey{}).(uint32) }

// Serve runs an HTTP server for all accounts of the host on the Unix socket listener ln, until ctx
// ends. It then removes the socket. Each account can have only a few connections at once. Accounts
// for which named returns true do not compete with the others. The timeout applies to each request
// and to each answer.
func Serve(ctx context.Context, ln net.Listener, timeout time.Duration, named func(uid uint32) bool, h http.Handler) {
	server := &http.Server{
		Handler: h, ReadTimeout: timeout, WriteTimeout: timeout,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, uidKey{}, c.(*client).uid)
		},
	}
	limits := Limits{Each: perAccount, Total: total, Named: func(_ *net.UnixConn, uid uint32) bool { return named(uid) }}
	_ = conns.Serve(ctx, server, conns.Patient(limits.Listen(ln), nil)) // Patient passes its own errors over
}

// Client returns a transport for HTTP requests over the Unix socket at the path socket. The caller
// must close its idle connections.
func Client(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return Dial(ctx, socket)
	}}
}
