// Package accounts bounds what each account of the host may have of a Unix socket, and serves
// HTTP there to every account, each as itself: SO_PEERCRED has who requests.
package accounts

import (
	"context"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/providers/limit"
)

// perAccount is how many connections for HTTP an account has at most.
const perAccount = 64

// Limit is a listener on a Unix socket at which each account has so many connections at most.
// Those that it accepts are syscall.Conn.
func Limit(ln net.Listener, perAccount int) net.Listener {
	return &listener{ln, limit.New[uint32](perAccount)}
}

type listener struct {
	net.Listener
	limit *limit.PerKey[uint32]
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		unix := conn.(*net.UnixConn)
		uid, err := peer(unix)
		if err == nil {
			if release, ok := l.limit.Acquire(uid); ok {
				return &client{unix, uid, release}, nil
			}
		}
		conn.Close()
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

func peer(c *net.UnixConn) (uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return 0, e
	}
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

type uidKey struct{}

// UID is whose request it is, of a handler of Serve.
func UID(r *http.Request) uint32 { return r.Context().Value(uidKey{}).(uint32) }

// Serve answers on ln, of Listen, until ctx ends, and removes the socket. A request and its
// answer have the timeout.
func Serve(ctx context.Context, ln net.Listener, timeout time.Duration, h http.Handler) {
	server := &http.Server{
		Handler: h, ReadTimeout: timeout, WriteTimeout: timeout,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, uidKey{}, c.(*client).uid)
		},
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		server.Close()
		close(closed)
	})
	server.Serve(Limit(ln, perAccount))
	if !stop() {
		<-closed
	}
}

// Client requests of the agent behind the socket. Its idle connections must be closed.
func Client(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
}
