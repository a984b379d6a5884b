// Package inbound serves what this host publishes: it admits verified peers by
// the allow list and joins each of their streams to a connection to the service's
// upstream, over TCP or a Unix socket, or to a UDP socket that sends there.
package inbound

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"florete"
	"florete/agent/acl"
	"florete/agent/budget"
	"florete/agent/drain"
	"florete/agent/identity"
	"florete/agent/tally"
	"florete/agent/transport"
	"florete/agent/wire"
)

// Config is what a Server needs; every field but ResetKey and PerPeer must be set.
type Config struct {
	Identities func() *identity.Set // in force
	Tally      *tally.Tally
	Log        *slog.Logger
	Grace      time.Duration // for live connections at Close
	ResetKey   *quic.StatelessResetKey
	PerPeer    int // bounds a peer's connections of QUIC, and streams of all of them; zero for 16384
}

// perPeer is a quarter of the files that a forwarder may have open (LimitNOFILE=).
const perPeer = 1 << 14

// Server publishes services. Apply says which.
type Server struct {
	Config
	rules atomic.Pointer[rules]
	gate  acl.Gate[*transport.Incoming]

	connections, streams *budget.Budget[florete.ID] // of each peer

	mu      sync.Mutex
	running map[string]*running // by address; none while nothing is published
}

// rules are what is published, compiled.
type rules struct {
	registry  transport.Registry
	published map[florete.ID]florete.Published
}

// New returns a server that publishes nothing.
func New(c Config) *Server {
	most := cmp.Or(c.PerPeer, perPeer)
	s := &Server{Config: c, connections: budget.New[florete.ID](most), streams: budget.New[florete.ID](most), running: map[string]*running{}}
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
	published := map[florete.ID]florete.Published{}
	for _, p := range f.Publish {
		published[p.ID] = p
	}
	s.rules.Store(&rules{registry, published})

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
	return t.Listen()
}

// Close stops taking connections, gives the live ones the server's grace, and
// returns when all is closed.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(func(string) bool { return true }, s.Grace)
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

func (r *running) close(grace time.Duration) {
	r.stop()
	r.conns.Go(r.ln.Stop)
	r.streams.Close(grace)
	time.Sleep(transport.Flush)
	r.end()
	r.conns.Wait()
	r.ln.Close()
}

// serve takes the streams of one connection.
func (s *Server) serve(r *running, in *transport.Incoming) {
	defer context.AfterFunc(r.ended, func() { in.Close(wire.Stopping) })()
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
	give, ok := s.take(s.connections, in)
	if !ok {
		in.Close(wire.Unreachable)
		return
	}
	defer give()
	for {
		st, err := in.AcceptStream()
		if err != nil {
			return
		}
		if !r.streams.Go(func(ctx context.Context) { s.carry(ctx, r, in, st) }) {
			reset(st, wire.Stopping)
		}
	}
}

// take counts one of a peer's in, unless there are too many.
func (s *Server) take(b *budget.Budget[florete.ID], in *transport.Incoming) (give func(), ok bool) {
	if give, ok = b.Take(in.Peer.ID); !ok {
		s.refuse(in, wire.Unreachable, fmt.Sprintf("has %d connections to this host", b.Most()))
	}
	return give, ok
}

func reset(st *quic.Stream, code wire.Code) {
	st.CancelRead(quic.StreamErrorCode(code))
	st.CancelWrite(quic.StreamErrorCode(code))
}
