// Package workload serves the SPIFFE Workload API on a Unix socket. A process of this host receives
// the X.509-SVIDs, with their keys, and the JWT-SVIDs that the manifest grants it, and the bundles
// of the trust domain and of those whose identities may call it. It receives them again whenever
// they change.
//
//	SPIFFE_ENDPOINT_SOCKET=unix:///run/florete/workload.sock
//
// The caller is identified through the kernel by its account and systemd unit, as for local
// listeners (package caller). A caller without an identity is refused with PermissionDenied. A
// caller whose certificate or token is not delivered yet is refused with Unavailable, and clients
// retry. A JWT-SVID is for a single audience named in the manifest.
package workload

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	api "github.com/spiffe/go-spiffe/v2/proto/spiffe/workload"
	"google.golang.org/grpc"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/agent/watch"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/unixsock"
)

const (
	// perAccount is the maximum number of connections of an account. All services that run as root
	// share one account.
	perAccount = 1024
	// total is the maximum number of connections of all accounts that the manifest names. They use
	// 21 KB each, which is a third of the unit's memory.
	total = 4096
	// A client uses one stream for SVIDs and one for bundles.
	maxStreams = 16
	// Requests are empty, except for methods that are not served.
	maxRequest = 64 << 10
	// maxHeaders bounds the headers of a request.
	maxHeaders = 16 << 10
	// connecting is the time that a client has to begin HTTP/2.
	connecting = 10 * time.Second
)

// Config configures Serve.
type Config struct {
	Layout hostdir.Layout // state of the host
	Log    *slog.Logger
	Poll   time.Duration // maximum interval between reads of the state; default 10 s
}

// server is a running Serve.
type server struct {
	api.UnimplementedSpiffeWorkloadAPIServer
	Config
	refused *journal.Summary
	state   atomic.Pointer[state]
}

// state contains the served data. It is immutable, except that changed is closed when a newer state
// has been read.
type state struct {
	document   document.Document
	trust      string // trust domain
	callers    caller.Table
	federates  federates
	identities *hostdir.SVIDSet
	jwts       jwts
	problems   string
	changed    chan struct{}
}

// Serve answers requests on ln, a Unix socket, until ctx ends.
func Serve(ctx context.Context, ln net.Listener, c Config) error {
	if c.Poll == 0 {
		c.Poll = 10 * time.Second
	}
	s := &server{Config: c, refused: journal.NewSummary(c.Log, journal.Interval)}
	defer s.refused.Close()
	s.state.Store(&state{identities: &hostdir.SVIDSet{}, changed: make(chan struct{})})
	s.read()
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { s.follow(ctx) })

	g := grpc.NewServer(grpc.Creds(attestation{}), grpc.WaitForHandlers(true), grpc.ConnectionTimeout(connecting),
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxRecvMsgSize(maxRequest), grpc.MaxHeaderListSize(maxHeaders),
		grpc.UnaryInterceptor(requireHeader), grpc.StreamInterceptor(requireHeaderOfStream))
	api.RegisterSpiffeWorkloadAPIServer(g, s)
	defer context.AfterFunc(ctx, g.Stop)()
	if err := g.Serve(unixsock.Limits{Each: perAccount, Total: total, Named: s.named}.Listen(ln)); err != nil && ctx.Err() == nil {
		return fmt.Errorf("socket of the Workload API: %w", err)
	}
	return nil
}

// named reports whether the manifest names the process of a connection.
func (s *server) named(c *net.UnixConn, _ uint32) bool {
	p, err := caller.NewPeer(c)
	if err != nil {
		return false
	}
	defer p.Close()
	process, err := p.Process()
	if err != nil {
		return false
	}
	_, ok := s.state.Load().callers.Identity(process)
	return ok
}

// follow reads the state of the host until ctx ends.
func (s *server) follow(ctx context.Context) {
	watch.Follow(ctx, s.Log, s.Poll, func() []string {
		s.read()
		dirs := []string{string(s.Layout), s.Layout.Documents(), s.Layout.Need("")}
		for _, n := range s.state.Load().document.Manifest().Needs {
			if hostdir.ForwarderReads(n) || n.Kind == document.KindJWT {
				dirs = append(dirs, s.Layout.Need(n.ID))
			}
		}
		return dirs
	})
}

// read makes a new state. Anything that cannot be read is kept as it was.
func (s *server) read() {
	old := s.state.Load()
	next := *old
	next.changed = make(chan struct{})
	doc, err := s.Layout.Refresh(old.document)
	problems := []error{err}
	if err == nil {
		m := doc.Manifest()
		var unloaded, unread, unknown []error
		next.document, next.trust = doc, m.TrustDomain
		next.identities, unloaded = hostdir.LoadSVIDs(s.Layout, m, old.identities)
		next.jwts, unread = loadJWTs(s.Layout, m, old.jwts)
		next.callers, unknown = caller.NewTable(m.Forwarder.Callers)
		next.federates = newFederates(m.Forwarder.Callers)
		problems = slices.Concat(unloaded, unread, unknown)
	}
	next.problems = fmt.Sprint(problems)
	if next.problems != old.problems {
		for _, p := range problems {
			if p != nil {
				s.Log.Warn("left as it was", "error", p)
			}
		}
	}
	s.state.Store(&next)
	close(old.changed)
}
