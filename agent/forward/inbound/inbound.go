// Package inbound serves what this host publishes: it admits verified peers by
// the allow list and joins each of their streams to a connection to the service's
// upstream, over TCP or a Unix socket, or to a UDP socket that sends there.
package inbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/drain"
	"github.com/florete/florete/agent/forward/fdstore"
	"github.com/florete/florete/agent/forward/identity"
	"github.com/florete/florete/agent/forward/logsum"
	"github.com/florete/florete/agent/forward/metrics"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/upstream"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/providers/limit"
)

// Config is what a Server needs; every field but ResetKey, Sockets and Limits must be set.
type Config struct {
	Identities func() *identity.Set // in force
	Metrics    *metrics.Counters
	Usage      *usage.Table
	Log        *slog.Logger
	Grace      time.Duration // for live connections at Close
	ResetKey   *quic.StatelessResetKey
	Sockets    *fdstore.Store
	Limits     Limits
}

// Server publishes services. Apply says which.
type Server struct {
	Config
	rules atomic.Pointer[rules]
	gate  acl.Gate[*transport.Incoming]

	refused              *logsum.Log
	total                *limit.PerKey[struct{}]   // connections of all peers
	connections, streams *limit.PerKey[florete.ID] // of each peer
	peers                peers

	mu      sync.Mutex
	running map[string]*running // by address; none while nothing is published
}

// rules are what is published, compiled.
type rules struct {
	registry  transport.Registry
	published map[florete.ID]published
}

// published is a service, and whose its upstream may be.
type published struct {
	florete.Published
	owner upstream.Owner
}

// New returns a server that publishes nothing.
func New(c Config) *Server {
	c.Limits = c.Limits.orDefaults()
	s := &Server{
		Config: c, refused: logsum.New(c.Log, logsum.Interval), total: limit.New[struct{}](c.Limits.Total),
		connections: limit.New[florete.ID](c.Limits.Connections), streams: limit.New[florete.ID](c.Limits.Streams),
		peers: peers{limits: c.Limits}, running: map[string]*running{},
	}
	s.rules.Store(&rules{})
	return s
}

// Apply puts the manifest's rules and the identities in force. It closes what
// they deny, keeps the rest, and listens where they say. Errors are of single services or
// addresses; what is denied is denied all the same, and Apply may be called again.
func (s *Server) Apply(f florete.Forwarder) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	registry, err := transport.NewRegistry(f.Publish)
	services := map[florete.ID]published{}
	for _, p := range f.Publish {
		owner, unknown := upstream.NewOwner(p.User)
		if unknown != nil {
			err = errors.Join(err, fmt.Errorf("owner of the upstream of %s: %w", p.ID, unknown))
		}
		services[p.ID] = published{p, owner}
	}
	s.rules.Store(&rules{registry, services})

	list, trust := acl.Compile(f.Publish), s.Identities().Trust
	s.gate.SetRule(func(in *transport.Incoming) bool {
		return list.Allows(in.Target, in.Peer.ID, in.Peer.Leaf()) && in.Peer.TrustedBy(trust)
	})
	errs := s.listen(f.Listen)
	if err != nil {
		errs = append(errs, err)
	}
	return errs
}

// listen settles on which addresses there are listeners. One that cannot be had does not
// keep others waiting.
func (s *Server) listen(addrs []string) (errs []error) {
	s.close(func(addr string) bool { return !slices.Contains(addrs, addr) }, 0)
	if s.Sockets != nil {
		errs = s.retain(addrs)
	}
	for _, addr := range addrs {
		if s.running[addr] != nil {
			continue
		}
		ln, err := s.bind(addr)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.running[addr] = s.start(ln)
	}
	return errs
}

// close ends listeners, all at once.
func (s *Server) close(which func(addr string) bool, grace time.Duration) {
	var closing sync.WaitGroup
	for addr, r := range s.running {
		if which(addr) {
			closing.Go(func() { r.close(grace) })
			delete(s.running, addr)
		}
	}
	closing.Wait()
}

func (s *Server) bind(addr string) (*transport.Listener, error) {
	t := transport.Server{
		Addr:       addr,
		Lookup:     func(sni string) (florete.ID, bool) { return s.rules.Load().registry.Lookup(sni) },
		Identities: s.Identities,
		Rejected:   s.rejected,
		ResetKey:   s.ResetKey,
	}
	if s.Sockets != nil {
		t.Bind = s.Sockets.ListenQUIC
	}
	return t.Listen()
}

// retain lets go of sockets at other addresses than these.
func (s *Server) retain(addrs []string) (errs []error) {
	var at []netip.AddrPort
	for _, addr := range addrs {
		udp, err := net.ResolveUDPAddr("udp", addr)
		if err != nil {
			errs = append(errs, fmt.Errorf("forwarder listen %q: %w", addr, err))
			continue
		}
		at = append(at, udp.AddrPort())
	}
	s.Sockets.RetainQUIC(at...)
	return errs
}

// Close stops taking connections, gives the live ones the server's grace, and
// returns when all is closed.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(func(string) bool { return true }, s.Grace)
	s.refused.Close()
}

// running is a bound listener with its goroutines: one that accepts, one for
// each connection, and one for each stream.
type running struct {
	ln        *transport.Listener
	accepting context.Context
	stop      context.CancelFunc // takes no more connections
	ended     context.Context
	end       context.CancelFunc // closes all connections
	conns     sync.WaitGroup
	streams   *drain.Group
}

func (s *Server) start(ln *transport.Listener) *running {
	r := &running{ln: ln, streams: drain.New()}
	r.accepting, r.stop = context.WithCancel(context.Background())
	r.ended, r.end = context.WithCancel(context.Background())
	r.conns.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			if r.accepting.Err() != nil {
				in.Close(wire.Stopping)
				continue
			}
			r.conns.Go(func() { s.serve(r, in) })
		}
	})
	return r
}

// close refuses new streams and connections, so that peers try again until the next
// process is there, while those that are being served have the time of grace.
func (r *running) close(grace time.Duration) {
	r.stop()
	r.streams.Close(grace)
	time.Sleep(transport.Flush)
	r.end()
	stopped := make(chan struct{})
	r.conns.Go(func() { r.ln.Stop(); close(stopped) })
	select {
	case <-stopped:
	case <-time.After(handshakes):
	}
	time.Sleep(transport.Flush)
	r.ln.Close()
	r.conns.Wait()
}

// handshakes is how long close waits for those that are under way.
const handshakes = time.Second

// serve takes the streams of one connection.
func (s *Server) serve(r *running, in *transport.Incoming) {
	// Stopping says that no stream without an answer was served: its caller tries again.
	var cut atomic.Bool
	var unserved atomic.Int64 // the first stream that is not served
	defer context.AfterFunc(r.ended, func() {
		if cut.Load() {
			in.Cut(quic.StreamID(unserved.Load()))
		} else {
			in.Close(wire.Stopping)
		}
	})()
	release, ok := s.gate.Admit(in, func() {
		s.refuse(in, wire.Denied, "the allow list changed")
		in.Close(wire.Denied)
	})
	if !ok {
		s.refuse(in, wire.Denied, "not in the allow list")
		in.Close(wire.Denied)
		return
	}
	defer release()
	release, err := s.acquireConnection(in.Peer.ID)
	if err != nil {
		s.refuse(in, wire.Busy, err.Error())
		in.Close(wire.Busy)
		return
	}
	defer release()
	defer in.Register(s.Usage, func() {
		s.refuse(in, wire.Busy, "memory is short, and nobody holds more of it")
		in.Close(wire.Busy)
	})()
	peer := s.peers.of(in.Peer.ID)
	for {
		st, err := in.AcceptStream()
		if err != nil {
			return
		}
		done, err := peer.begin(in.Context())
		if err != nil {
			return
		}
		in.Usage.Opened.Add(1)
		release, ok := s.streams.Acquire(in.Peer.ID)
		if !ok {
			done(false)
			s.refuse(in, wire.Busy, fmt.Sprintf("has %d TCP connections and UDP sessions to this host", s.streams.Max()))
			transport.Reset(st, wire.Busy)
			continue
		}
		unserved.Store(int64(st.StreamID()) + 1)
		if !r.streams.Go(func(ctx context.Context) {
			defer release()
			in.Usage.Streams.Add(1)
			defer in.Usage.Streams.Add(-1)
			s.carry(ctx, r, in, st, done)
			if ctx.Err() != nil {
				cut.Store(true)
			}
		}) {
			unserved.Store(int64(st.StreamID()))
			release()
			done(false)
			transport.Reset(st, wire.Stopping)
		}
	}
}

// acquireConnection counts a connection of a peer in, unless there are too many.
func (s *Server) acquireConnection(peer florete.ID) (release func(), err error) {
	releaseOwn, ok := s.connections.Acquire(peer)
	if !ok {
		return nil, fmt.Errorf("has %d connections to this host", s.connections.Max())
	}
	releaseTotal, ok := s.total.Acquire(struct{}{})
	if !ok {
		releaseOwn()
		return nil, fmt.Errorf("this host has %d connections", s.total.Max())
	}
	return func() { releaseTotal(); releaseOwn() }, nil
}
