// Package announced serves HTTP behind the forwarder, which publishes it as a service of the host:
// web pages on a loopback address (Pages), and APIs on a Unix socket that only the forwarder can
// connect to. The forwarder announces the caller of an API in a PROXY protocol header. The content
// of a request never identifies its caller.
//
// Operators reach the processes of all kinds of need through the API of kind config. Its process
// passes a request on to the process of another kind over a Unix socket on the same host (Relay),
// with the caller that the forwarder announced. The other process decides by its own policy, and
// writes the audit row into its own log, in the transaction that makes the change (RunOperators).
// Therefore no process needs to open what another process has sealed.
package announced

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/server"
)

// Config configures an API that the forwarder publishes. All fields are required.
type Config struct {
	Socket    string // Unix socket to which the forwarder connects
	Forwarder string // account of the forwarder; no other may connect
	Service   string // service under which the forwarder publishes the socket
	Kind      string // kind in the audit rows

	Conns, ConnsOfCaller int // most open connections, in total and of one caller

	Wanted  func() bool // reports whether there are callers to serve
	Handler http.Handler
	Audit   *server.Audit
	Logger  *slog.Logger
}

// A Caller identifies the sender of a request. The forwarder of this host has authenticated the
// sender, and states its SPIFFE ID and the name under which it called the service.
type Caller struct {
	ID   spiffe.ID
	Name string

	// Account is set for a process on this host that calls without the forwarder. It is the
	// process's Unix account. Such a caller has neither ID nor Name.
	Account string
}

// String returns the caller in the form of audit rows.
func (c Caller) String() string {
	if c.Account != "" {
		return "the account " + c.Account + " of this host"
	}
	return c.ID.String()
}

type callerKey struct{}

// From returns the caller of the request to which the context belongs.
func From(ctx context.Context) Caller { return ctx.Value(callerKey{}).(Caller) }

// ServeAccount serves h to a process on this host over one connection, without the forwarder.
// Handlers see the given Unix account as the Caller. ServeAccount returns when the connection is
// closed.
func ServeAccount(c net.Conn, account string, h http.Handler) error {
	l := &single{Conn: c, closed: make(chan struct{})}
	hs := &http.Server{Handler: h, ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, callerKey{}, Caller{Account: account})
	}}
	if err := hs.Serve(l); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// single is a listener that accepts one connection, and ends when that connection is closed.
type single struct {
	net.Conn
	accepted bool
	once     sync.Once
	closed   chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	if !s.accepted {
		s.accepted = true
		return s, nil
	}
	<-s.closed
	return nil, net.ErrClosed
}

func (s *single) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

func (s *single) Addr() net.Addr { return s.LocalAddr() }

// retry is the pause after the socket has failed. While Config.Wanted returns false, Run calls it
// again at the same interval.
const retry = time.Second

// Run serves the API until ctx ends. It begins to listen once c.Wanted returns true. If listening
// or serving fails, Run logs the error and tries again.
func Run(ctx context.Context, c Config) {
	journal.Every(ctx, retry, c.Logger, func(ctx context.Context) error {
		if c.Wanted() {
			return c.serve(ctx)
		}
		return nil
	}, "a service of this host is not served", "service", c.Service)
}

// serve serves until ctx ends or the socket fails.
func (c Config) serve(ctx context.Context) error {
	l, err := c.listen()
	if err != nil {
		return err
	}
	hs := &http.Server{
		Handler:           c.Handler,
		ReadHeaderTimeout: Stall,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, from net.Conn) context.Context {
			return context.WithValue(ctx, callerKey{}, from.(*conn).caller)
		},
	}
	c.Logger.Info("serving", "service", c.Service, "at", c.Socket)
	return conns.Serve(ctx, hs, l)
}
