// Package inbound serves what this host publishes: it admits verified peers by
// the allow list and joins each of their streams to a connection to the service's
// upstream, over TCP or a Unix socket, or to a UDP socket that sends there.
package inbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"florete"
	"florete/agent/acl"
	"florete/agent/budget"
	"florete/agent/drain"
	"florete/agent/identity"
	"florete/agent/logsum"
	"florete/agent/tally"
	"florete/agent/transport"
	"florete/agent/usage"
	"florete/agent/wire"
)

// Config is what a Server needs; every field but ResetKey and Limits must be set.
type Config struct {
	Identities func() *identity.Set // in force
	Tally      *tally.Tally
	Usage      *usage.Table
	Log        *slog.Logger
	Grace      time.Duration // for live connections at Close
	ResetKey   *quic.StatelessResetKey
	Limits     Limits
}

// Server publishes services. Apply says which.
type Server struct {
	Config
	rules atomic.Pointer[rules]
	gate  acl.Gate[*transport.Incoming]

	refused              *logsum.Log
	total                *budget.Budget[struct{}]   // connections of all peers
	connections, streams *budget.Budget[florete.ID] // of each peer
	peers                peers

	mu  sync.Mutex
	run *running // nil while nothing is published
}

// rules are what is published, compiled.
type rules struct {
	registry  transport.Registry
	published map[florete.ID]florete.Published
}

// New returns a server that publishes nothing.
func New(c Config) *Server {
	c.Limits = c.Limits.orDefaults()
	s := &Server{
		Config: c, refused: logsum.New(c.Log, logsum.Interval), total: budget.New[struct{}](c.Limits.Total),
		connections: budget.New[florete.ID](c.Limits.Connections), streams: budget.New[florete.ID](c.Limits.Streams),
		peers: peers{limits: c.Limits},
	}
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
	published := map[florete.ID]florete.Published{}
	for _, p := range f.Publish {
		published[p.ID] = p
	}
	s.rules.Store(&rules{registry, published})

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
	ln, err := t.Listen()
	if err != nil {
		return err
	}
	s.run = s.start(addr, ln)
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
	s.refused.Close()
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
	give, err := s.takeConnection(in.Peer.ID)
	if err != nil {
		s.refuse(in, wire.Overloaded, err.Error())
		in.Close(wire.Overloaded)
		return
	}
	defer give()
	defer in.Register(s.Usage, func() {
		s.refuse(in, wire.Overloaded, "memory is short, and nobody holds more of it")
		in.Close(wire.Overloaded)
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
		give, ok := s.streams.Take(in.Peer.ID)
		if !ok {
			done(false)
			s.refuse(in, wire.Overloaded, fmt.Sprintf("has %d TCP connections and UDP flows to this host", s.streams.Most()))
			transport.Reset(st, wire.Overloaded)
			continue
		}
		if !r.streams.Go(func(ctx context.Context) {
			defer give()
			in.Usage.Streams.Add(1)
			defer in.Usage.Streams.Add(-1)
			s.carry(ctx, r, in, st, done)
		}) {
			give()
			done(false)
			transport.Reset(st, wire.Stopping)
		}
	}
}

// takeConnection counts a connection of a peer in, unless there are too many.
func (s *Server) takeConnection(peer florete.ID) (give func(), err error) {
	giveOwn, ok := s.connections.Take(peer)
	if !ok {
		return nil, fmt.Errorf("has %d connections to this host", s.connections.Most())
	}
	giveTotal, ok := s.total.Take(struct{}{})
	if !ok {
		giveOwn()
		return nil, fmt.Errorf("this host has %d connections", s.total.Most())
	}
	return func() { giveTotal(); giveOwn() }, nil
}
