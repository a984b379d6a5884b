// Package inbound serves what this host publishes: it admits verified peers by
// the allow list and joins each of their streams to a connection to the service's
// upstream, over TCP or a Unix socket, or to a UDP socket that sends there.
package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"florete"
	"florete/agent/acl"
	"florete/agent/budget"
	"florete/agent/drain"
	"florete/agent/fdstore"
	"florete/agent/identity"
	"florete/agent/tally"
	"florete/agent/transport"
	"florete/agent/upstream"
	"florete/agent/wire"
)

// Config is what a Server needs; every field but ResetKey, Sockets and PerPeer must be set.
type Config struct {
	Identities func() *identity.Set // in force
	Tally      *tally.Tally
	Log        *slog.Logger
	Grace      time.Duration // for live connections at Close
	ResetKey   *quic.StatelessResetKey
	Sockets    *fdstore.Store
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

	mu  sync.Mutex
	run *running // nil while nothing is published
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
	most := cmp.Or(c.PerPeer, perPeer)
	s := &Server{Config: c, connections: budget.New[florete.ID](most), streams: budget.New[florete.ID](most)}
	s.rules.Store(&rules{})
	return s
}

// Apply puts the manifest's rules and the identities in force. It closes what
// they deny, keeps the rest, and listens where they say. With an error what they deny
// is denied all the same, and Apply may be called again.
func (s *Server) Apply(f florete.Forwarder) error {
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
	return errors.Join(err, s.listen(f.Listen))
}

// listen moves the listener to addr, where it is not there already.
func (s *Server) listen(addr string) error {
	if s.run != nil && s.run.addr == addr {
		return nil
	}
	if s.run != nil {
		s.run.close(0)
		s.run = nil
	}
	if s.Sockets != nil {
		if err := s.retain(addr); err != nil {
			return err
		}
	}
	if addr == "" {
		return nil
	}
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
	ln, err := t.Listen()
	if err != nil {
		return err
	}
	s.run = s.start(addr, ln)
	return nil
}

// retain lets go of sockets at other addresses than this one.
func (s *Server) retain(addr string) error {
	if addr == "" {
		s.Sockets.RetainQUIC()
		return nil
	}
	at, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return fmt.Errorf("forwarder listen %q: %w", addr, err)
	}
	s.Sockets.RetainQUIC(at.AddrPort())
	return nil
}

// Close stops taking connections, gives the live ones the server's grace, and
// returns when all is closed.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		s.run.close(s.Grace)
		s.run = nil
	}
}

// running is a bound listener with its goroutines: one that accepts, one for
// each connection, and one for each stream.
type running struct {
	addr      string
	ln        *transport.Listener
	accepting context.Context
	stop      context.CancelFunc // takes no more connections
	ended     context.Context
	end       context.CancelFunc // closes all connections
	conns     sync.WaitGroup
	streams   *drain.Group
}

func (s *Server) start(addr string, ln *transport.Listener) *running {
	r := &running{addr: addr, ln: ln, streams: drain.New()}
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
	defer context.AfterFunc(r.ended, func() {
		if cut.Load() {
			in.Close(wire.Reset)
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
		if !r.streams.Go(func(ctx context.Context) {
			s.carry(ctx, r, in, st)
			if ctx.Err() != nil {
				cut.Store(true)
			}
		}) {
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
