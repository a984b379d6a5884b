// Package accounts limits the use of a Unix socket by each account of the host, and serves HTTP on
// such a socket. The account of a caller is determined by SO_PEERCRED.
package accounts

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/unixsock"
)

// Bounds of the connections for HTTP.
const (
	perAccount = 64
	total      = 1024
)

// Of the accounts that the policy does not name, each has strangerEach connections at most, and
// strangers have them all together: an account may have 65,536 subordinate ones (subuid(5)). Of
// those that it names, one that has more than a few leaves the last quarter to the others.
const (
	strangers    = 64
	strangerEach = 16
	few          = 16
)

// Limits of the connections at a Unix socket. Named accounts have Each, and Total in all; root
// is always one of them.
type Limits struct {
	Each, Total int

	// Named reports whether the policy names the account, or the process, that connected.
	Named func(c *net.UnixConn, uid uint32) bool
}

// Listen bounds the connections that ln accepts, and closes others. Those that it accepts are
// syscall.Conn.
func (l Limits) Listen(ln net.Listener) net.Listener {
	return &listener{Listener: ln, limits: l, held: map[uint32]int{}}
}

type listener struct {
	net.Listener
	limits Limits

	mu        sync.Mutex
	held      map[uint32]int // by account; what its processes have that are not named counts, too
	named     int            // in all
	strangers int
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		unix := conn.(*net.UnixConn)
		if peer, err := unixsock.Peer(unix); err == nil {
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

// client is a connection of an account.
type client struct {
	*net.UnixConn
	uid     uint32
	release func()
}

func (c *client) Close() error {
	err := c.UnixConn.Close()
	if err == nil { // and no second time
		c.release()
	}
	return err
}

type uidKey struct{}

// UID is whose request it is, of a handler of Serve.
func UID(r *http.Request) uint32 { return r.Context().Value(uidKey{}).(uint32) }

// Serve answers on ln, of Listen, until ctx ends, and removes the socket. A request and its
// answer have the timeout. The policy names some accounts.
func Serve(ctx context.Context, ln net.Listener, timeout time.Duration, named func(uid uint32) bool, h http.Handler) {
	server := &http.Server{
		Handler: h, ReadTimeout: timeout, WriteTimeout: timeout,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, uidKey{}, c.(*client).uid)
		},
	}
	limits := Limits{Each: perAccount, Total: total, Named: func(_ *net.UnixConn, uid uint32) bool { return named(uid) }}
	_ = conns.Serve(ctx, server, conns.Patient(limits.Listen(ln), nil)) // Patient passes its errors over
}

// Client requests of the agent behind the socket. Its idle connections must be closed.
func Client(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return unixsock.Dial(ctx, socket)
	}}
}
