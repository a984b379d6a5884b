package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
)

// Config configures a Server. A field may be zero only if its comment says so.
type Config struct {
	Policies *Policies
	Kind     AnyKind
	Store    store.Store
	Key      *sealedstore.Key

	// Certificate returns the provider's own SVID. It is called at every handshake, so that a
	// renewed SVID is used at once.
	Certificate func() (*tls.Certificate, error)

	// Parallel is the number of requests that are decided at the same time. If it is zero, the
	// number is 32. A single caller may use half of them. Other requests wait. A request that waits
	// too long is refused as busy.
	Parallel int

	// Connections is the maximum number of open connections whose caller is not verified. A single
	// network may have a quarter of them. Beyond the maximum, new connections replace older
	// connections. If it is zero, the maximum is 1024, plus one for each node in the policy.
	Connections int

	Retention Retention

	// Audit is the audit log. If it is nil, the server uses NewAudit with its store.
	Audit *Audit

	// List is the place from which the process itself reads the newest revocation list. If it is
	// nil, the process reads the list only from files.
	List *ListSource

	// Log is the tamper-evident log to which audit rows are appended. If it is nil, there is no
	// such log.
	Log *tlog.Log

	// Ready is called when the server accepts requests and its kind works. Ready may be nil.
	Ready func()

	Logger *slog.Logger // nil for slog.Default()
}

// Server answers the requests of hosts for one kind of need.
type Server struct {
	Config
	slots   chan struct{}
	callers *conns.PerKey[string]
	locks   keyLocks
	lately  *lru.Cache[string, lately] // by place

	turnedAway conns.Failures // connections for which there was no turn soon

	newestList atomic.Int64 // number of the newest revocation list on record
	mux        *http.ServeMux
}

// New returns a Server. If the kind cannot work with the policy in force, New returns an error.
func New(c Config) (*Server, error) {
	c.Parallel = cmp.Or(c.Parallel, 32)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Audit == nil {
		c.Audit = NewAudit(c.Store, c.Logger)
	}
	if c.Ready == nil {
		c.Ready = func() {}
	}
	if err := c.Policies.use(c.Kind); err != nil {
		return nil, err
	}
	c.Policies.newest.source = c.List
	recent, err := lru.New[string, lately](latest)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Config: c, lately: recent, slots: make(chan struct{}, c.Parallel), callers: conns.NewPerKey[string](c.Parallel / 2),
		turnedAway: conns.Failures{Log: c.Logger, Message: "hosts are told to come back later, at the pace at which this provider serves them"},
	}
	s.mux = s.routes()
	return s, nil
}

// Serve answers requests on a listener, follows changes of the policy, and runs the kind's Runner.
// It returns nil after ctx ends, and an error if the listener or the Runner fails. It closes the
// listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	hs := &http.Server{
		Handler:           s.mux,
		ReadHeaderTimeout: conns.Rest, // bounds the TLS handshake too
		ReadTimeout:       conns.Rest + 10*time.Second,
		WriteTimeout:      40 * time.Second,
		IdleTimeout:       time.Minute, // hosts reuse a connection for 20 seconds, perhaps slowly
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          handshakes{s.Audit, s.Logger}.log(),
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return withPeer(conns.Context(ctx, c), c) },
		ConnState:         connState,
	}
	versions := &versionRecorder{Server: s, recorded: map[string]string{}}
	versions.record(context.WithoutCancel(ctx)) // before anything is decided on it
	within := conns.Listen(conns.Patient(l, s.Logger), s.limit())
	g, ctx := errgroup.WithContext(ctx)
	l = tls.NewListener(within, s.tls())
	if s.Kind.Listener != nil {
		l = s.Kind.Listener(l)
	}
	g.Go(func() error { return conns.Serve(ctx, hs, l) })
	g.Go(func() error {
		s.Policies.run(ctx, func() { within.Resize(s.limit()); versions.record(ctx) })
		return nil
	})
	g.Go(func() error { s.Policies.newest.follow(ctx); return nil })
	g.Go(func() error { s.Audit.run(ctx); return nil })
	g.Go(func() error { s.retain(ctx); return nil })
	if s.Log != nil {
		g.Go(func() error { s.Log.Run(ctx); return nil })
	}
	if s.Kind.Run != nil {
		g.Go(func() error {
			if err := s.Kind.Run(ctx, s.Ready); ctx.Err() == nil {
				return err
			}
			return nil // whatever it was in the middle of
		})
	} else {
		s.Ready()
	}
	return g.Wait()
}

const (
	// turns bounds the connections between the first byte of a handshake and the first answer.
	turns = 256

	// turnsWait is half as long as hosts wait for a handshake, because the estimate may be wrong
	// and waiting connections hold memory.
	turnsWait = 30 * time.Second
)

// limit returns the limits for connections. They have room for all nodes of the policy at once, and
// for the watches of these nodes.
func (s *Server) limit() conns.Limit {
	nodes := len(s.Policies.now.Load().hostKeys)
	total := cmp.Or(s.Connections, 1024+nodes)
	return conns.Limit{Total: total, Prefix: max(total/4, 1), Known: 1024 + 4*nodes, Turns: turns, Wait: turnsWait}
}

// tls returns a configuration that requests a client certificate. It leaves the verification of the
// certificate to the handler, which can return the reason of a refusal. Before any signature of the
// client is verified, CheckChain limits the cost of the verification. Sessions are never resumed.
func (s *Server) tls() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"http/1.1"},
		ClientAuth:             tls.RequestClientCert,
		SessionTicketsDisabled: true,
		VerifyConnection:       func(cs tls.ConnectionState) error { return trust.CheckChain(cs.PeerCertificates) },
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			err := conns.Begin(hello.Conn) // before anything is computed
			if full := (*conns.FullError)(nil); errors.As(err, &full) {
				s.turnedAway.Note(hello.Conn.LocalAddr(), err)
			}
			return nil, err
		},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := s.Certificate()
			if err != nil {
				s.Logger.Error("no certificate for this provider", "error", err)
			}
			return c, err
		},
	}
}
