// Package announced serves HTTP behind the forwarder, which publishes it as a service of the host:
// web pages on a loopback address (Pages), and APIs on a Unix socket that only the forwarder can
// connect to. The forwarder announces the caller of an API in a PROXY protocol header. The content
// of a request never identifies its caller.
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

// Config configures an API behind the forwarder. All fields are required.
type Config struct {
	Socket    string // that the forwarder connects to
	Forwarder string // account that alone may
	Service   string // that leads there
	Kind      string // of audit rows

	Conns, ConnsOfCaller int // that are open at most, in all and of one caller

	Wanted  func() bool // is there anybody to serve?
	Handler http.Handler
	Audit   *server.Audit
	Logger  *slog.Logger
}

// A Caller is an identity that the forwarder announced, with the name by which it called.
type Caller struct {
	ID   spiffe.ID
	Name string

	// Account is an account of this host that calls without the forwarder, from its own process.
	// Such a caller has neither ID nor Name.
	Account string
}

// String returns the caller as audit rows name it.
func (c Caller) String() string {
	if c.Account != "" {
		return "the account " + c.Account + " of this host"
	}
	return c.ID.String()
}

type callerKey struct{}

// From returns the caller of a request from the request's context.
func From(ctx context.Context) Caller { return ctx.Value(callerKey{}).(Caller) }

// ServeAccount serves one connection of an account of this host until the connection is closed.
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

// single is a listener that accepts one connection and ends with it.
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

// retry is the pause after a failure of the socket, and the interval at which Wanted is called
// until it reports true.
const retry = time.Second

// Run serves until ctx ends. It starts to listen once c.Wanted reports true.
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
