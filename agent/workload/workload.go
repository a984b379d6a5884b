// Package workload serves the SPIFFE Workload API, from which processes of this host get their
// SPIFFE identities. The API is on a Unix socket:
//
//	SPIFFE_ENDPOINT_SOCKET=unix:///run/florete/workload.sock
//
// A process receives the X.509-SVIDs and JWT-SVIDs that the manifest grants it, with the keys of
// the X.509-SVIDs. It also receives the bundle of its trust domain, and the bundles of trust
// domains whose identities may call it. Whenever they change, it receives them again.
//
// The kernel identifies a caller by its account and systemd unit, as for local listeners (package
// caller). The API refuses a caller without an identity with PermissionDenied. If a certificate or
// token is not delivered yet, the API answers Unavailable, and clients try again. A JWT-SVID has a
// single audience, which the manifest names.
package workload

import (
	"cmp"
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
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/unixsock"
)

const (
	// perAccount is the maximum number of connections of one account. It is high, because all
	// services that run as root share one account.
	perAccount = 1024
	// total is the maximum number of connections of all accounts that the manifest names. A
	// connection uses 21 KB, so all of them use a third of the unit's memory.
	total = 4096
	// maxStreams is the maximum number of streams of a client. A client uses one stream for SVIDs
	// and one for bundles.
	maxStreams = 16
	// maxRequest is the maximum size of a request in bytes. Requests are empty, except for methods
	// that are not served.
	maxRequest = 64 << 10
	// maxHeaders is the maximum size of the headers of a request in bytes.
	maxHeaders = 16 << 10
	// connecting is the time within which a client must begin HTTP/2.
	connecting = 10 * time.Second
)

// Config configures the Workload API that Serve serves.
type Config struct {
	Layout hostdir.Layout // state directory of the host
	Log    *slog.Logger
	Poll   time.Duration // longest interval between reads of the state; default 10 s
}

// server is a running server of the Workload API.
type server struct {
	api.UnimplementedSpiffeWorkloadAPIServer
	Config
	refused *journal.Summary
	state   atomic.Pointer[state]
}

// state contains the data that the API serves. It is immutable. Its channel changed is closed when
// a newer state has been read.
type state struct {
	document   document.Document
	trust      string // name of the trust domain
	callers    caller.Table
	federates  federates
	identities *hostdir.SVIDSet
	jwts       jwts
	problems   string
	changed    chan struct{}
}

// Serve answers requests of the SPIFFE Workload API on a Unix socket until ctx ends. The kernel
// identifies the process that has connected, and the manifest says which SPIFFE IDs the process may
// use.
func Serve(ctx context.Context, ln net.Listener, c Config) error {
	c.Poll = cmp.Or(c.Poll, 10*time.Second)
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

// named reports whether the manifest grants an identity to the process at the other end of a
// connection.
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

// follow reads the state of the host when it changes, until ctx ends.
func (s *server) follow(ctx context.Context) {
	hostdir.Follow(ctx, s.Log, s.Poll, func() []string {
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

// read reads the state of the host that the API serves. If a part cannot be read, the API continues
// to serve the previous content of that part.
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
