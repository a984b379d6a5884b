// Package outbound connects processes of this host to services of the cluster. It opens a local
// listener, TCP or UDP, for each reachable service. It also opens a SOCKS5 listener (RFC 1928) for
// each identity with a SOCKS address. The account and the systemd unit of the connecting process
// determine the identity under which the connection is made.
package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
)

// Config is the configuration of a Server. All fields must be set except Access, PerUser and
// Traces.
type Config struct {
	Pool *transport.Pool
	// Identities returns the current SVIDs and trust roots. They serve to prove this host to callers
	// with a client certificate, and to verify this certificate.
	Identities func() *hostdir.SVIDSet
	Sockets    *handover.Store
	Metrics    *telemetry.Counters
	Log        *slog.Logger
	Access     *telemetry.AccessLog // of connections to entries; may be nil
	Traces     *telemetry.Tracer    // may be nil
	Grace      time.Duration        // time that Close gives open connections to end
	PerUser    int                  // maximum number of connections of one account; default 16384
}

// perUser is the default of Config.PerUser. It is a quarter of the files that a forwarder may open
// (LimitNOFILE=).
const perUser = 1 << 14

// perUserAssociations is the maximum number of UDP ASSOCIATE requests of one account. Each request
// uses three files and 64 KiB.
const perUserAssociations = 256

// Server connects processes of this host to services on other hosts. Apply sets its listeners and
// callers.
type Server struct {
	Config
	rules    atomic.Pointer[rules]
	enforcer acl.Enforcer[connKey]
	users    *conns.PerKey[uint32]

	entering *conns.PerKey[listenerKey] // connections of strangers
	sources  sync.Map                   // sourcesKey → *acl.Sources

	refused      *journal.Summary
	failures     *conns.Failures // of accepting connections
	associations *conns.PerKey[uint32]
	held         sync.Map // uid → *datagram.Held
	carrying     *handover.Tasks

	mu       sync.Mutex
	draining bool
	tcp      map[netip.AddrPort]*net.TCPListener
	udp      map[netip.AddrPort]*udpListener
	accepts  sync.WaitGroup
}

// New returns a Server without listeners. Call Apply to set them.
func New(c Config) *Server {
	s := &Server{
		Config: c, entering: conns.NewPerKey[listenerKey](perEntry), users: conns.NewPerKey[uint32](cmp.Or(c.PerUser, perUser)), carrying: handover.NewTasks(),
		failures: &conns.Failures{Log: c.Log},
		refused:  journal.NewSummary(c.Log, journal.Interval), associations: conns.NewPerKey[uint32](perUserAssociations),
		tcp: map[netip.AddrPort]*net.TCPListener{}, udp: map[netip.AddrPort]*udpListener{},
	}
	s.rules.Store(&rules{})
	return s
}

// Apply sets the listeners and the callers of a manifest, and can be called again for a newer one.
// It closes the connections that the new manifest does not allow, and keeps all others. Each
// returned error concerns one caller or listener. Everything else takes effect.
func (s *Server) Apply(m document.Manifest) []error {
	r, errs := compile(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	// The enforcer gets the new rules first, so that a connection under the new rules never meets
	// the old ones in it.
	own := s.Identities().Trust
	s.enforcer.SetRule(func(k connKey) bool { return r.check(k) == nil && k.stranger.trustedBy(own) })
	s.rules.Store(r)

	if s.draining {
		return errs
	}
	tcp, udp := r.addresses()
	s.Sockets.Retain(tcp, udp)
	s.Sockets.Share(r.sharedPorts())
	return slices.Concat(errs, reconcile(s.tcp, tcp, s.listen), reconcile(s.udp, udp, s.listenUDP))
}

// reconcile closes the listeners that are not wanted and opens those that are missing.
func reconcile[L io.Closer](there map[netip.AddrPort]L, wanted map[netip.AddrPort]bool, open func(netip.AddrPort) (L, error)) (errs []error) {
	for addr, l := range there {
		if !wanted[addr] {
			l.Close()
			delete(there, addr)
		}
	}
	for addr := range wanted {
		if _, ok := there[addr]; ok {
			continue
		}
		l, err := open(addr)
		if err != nil {
			errs = append(errs, fmt.Errorf("local listener: %w", err))
			continue
		}
		there[addr] = l
	}
	return errs
}

// Drain stops accepting connections and UDP sessions, because the next process of the forwarder
// accepts them on the same sockets. Existing ones continue here. After Drain, Apply opens no
// listeners.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	reconcile(s.tcp, nil, s.listen)
	for _, l := range s.udp {
		l.stop()
	}
	s.accepts.Wait()
}

// Wait waits until the server has no connections or UDP sessions left, or until ctx ends. It is
// called after Drain.
func (s *Server) Wait(ctx context.Context) { s.carrying.Wait(ctx) }

// Close stops accepting connections and ends UDP sessions. It waits for open connections during the
// grace period, and then closes the remaining ones. It returns when all are closed. The caller must
// close the pool afterwards.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	reconcile(s.tcp, nil, s.listen)
	reconcile(s.udp, nil, s.listenUDP)
	s.accepts.Wait()
	s.carrying.Close(s.Grace)
	s.refused.Close()
	s.Access.Close()
	time.Sleep(transport.Flush)
}

func (s *Server) listen(addr netip.AddrPort) (*net.TCPListener, error) {
	ln, err := s.Sockets.Listen(addr)
	if err == nil {
		s.accepts.Go(func() { s.accept(ln, addr) })
	}
	return ln, err
}

func (s *Server) accept(ln *net.TCPListener, addr netip.AddrPort) {
	for {
		conn, err := ln.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.failures.Pause(addr, err)
			continue
		}
		ctx, ended, ok := s.carrying.Begin()
		if !ok {
			reset(conn)
			continue
		}
		go s.serve(ctx, conn, addr, ended)
	}
}

// serve finds the caller and the target of a local connection and carries the connection. It calls
// ended when the connection has ended, which may be after serve returns.
func (s *Server) serve(ctx context.Context, local *net.TCPConn, addr netip.AddrPort, ended func()) {
	ends := &handover.Ends{}
	defer ends.Close()
	ends.Add(ended)
	c := connection{rules: s.rules.Load()}
	if at := (listenerKey{addr, document.TCP}); len(c.rules.entries[at]) > 0 {
		s.enter(ctx, local, at, c, ends)
		return
	}
	var err error
	if c.by, err = caller.FindProcess(local); err != nil {
		s.refuse(c, &refusal{becauseCallerGone, err.Error()})
		reset(local)
		return
	}
	release, ok := s.users.Acquire(c.by.UID)
	if !ok {
		s.refuse(c, &refusal{becauseTooMany, fmt.Sprintf("has %d connections", s.users.Max())})
		reset(local)
		return
	}
	ends.Add(release)
	if c.serviceKey, ok = c.rules.reachAt[listenerKey{addr, document.TCP}]; ok {
		c.as, _ = c.rules.callers.Identity(c.by)
		e := newEarly(local)
		defer e.release()
		s.direct(ctx, local, c, e, ends)
		return
	}
	if c.as, ok = c.rules.socksAt[addr]; ok {
		c.socks = true
		s.socks(ctx, local, c, ends)
		return
	}
	reset(local)
}

func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}
