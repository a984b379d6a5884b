// Package inbound serves the services that this host publishes. It admits callers from other hosts
// by the allow list, and joins each stream of a caller to a connection to the service's upstream.
// An upstream is reached over TCP, UDP or a Unix socket. A Relay passes streams on to other hosts.
package inbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/upstream"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/spiffe"
)

// Config is the configuration of a Server. All fields must be set except Relay, ResetKey, Sockets,
// Limits, Access and Traces.
type Config struct {
	Node       spiffe.ID               // node of this host
	Identities func() *hostdir.SVIDSet // returns the current SVID set
	Relay      *Relay                  // may be nil if this host is no relay
	Metrics    *telemetry.Counters
	Usage      *usage.Table
	Whois      *whois.Table
	Sessions   *status.Sessions
	Log        *slog.Logger
	Access     *telemetry.AccessLog // may be nil
	Traces     *telemetry.Tracer    // may be nil
	Grace      time.Duration        // time that Close gives open connections to end
	ResetKey   *quic.StatelessResetKey
	Sockets    *handover.Store
	Limits     Limits
}

// Server serves the published services of this host to callers on other hosts. Apply sets the
// services.
type Server struct {
	Config
	rules    atomic.Pointer[rules]
	enforcer acl.Enforcer[*transport.Incoming]
	ports    acl.Enforcer[portKey] // for streams

	refused   *journal.Summary
	quic, tcp connLimit
	streams   *conns.PerKey[spiffe.ID] // maximum number for each peer
	peers     peers
	limits    acl.Limits

	draining    atomic.Bool
	live        sync.Map // values are *served
	connections *handover.Tasks

	sockets atomic.Pointer[[]*transport.Listener] // from which uplinks are dialled
	uplinks atomic.Pointer[[]*transport.Uplink]
	outside transport.Outside // addresses by which relays see the sockets of uplinks

	mu      sync.Mutex
	running map[listenAt]*running // empty while nothing is published
	ends    *time.Timer           // fires when a permission ends; nil if none does
	logins  acl.Logins            // that were permitted at the last check
}

// rules contains the published services and their allow lists in compiled form.
type rules struct {
	registry  transport.Registry
	published map[spiffe.ID][]published // ports of each service
}

// portKey identifies a stream to one port of a service with several ports. It is a key of the
// enforcer.
type portKey struct {
	in   *transport.Incoming
	port string
}

// published is a published service, with the account that must own the socket of its upstream.
type published struct {
	document.Published
	owner upstream.Owner
}

// New returns a Server that publishes nothing until Apply is called.
func New(c Config) *Server {
	c.Limits = c.Limits.orDefaults()
	if c.Relay == nil {
		c.Relay = NewRelay(nil)
	}
	s := &Server{
		Config: c, refused: journal.NewSummary(c.Log, journal.Interval), quic: newConnLimit(c.Limits.Connections, c.Limits.Total),
		tcp: newConnLimit(c.Limits.OverTCP, c.Limits.TotalOverTCP), streams: conns.NewPerKey[spiffe.ID](c.Limits.Streams),
		peers: peers{limits: c.Limits}, running: map[listenAt]*running{}, connections: handover.NewTasks(),
	}
	s.rules.Store(&rules{})
	return s
}

// Apply sets the services, the allow lists and the listeners of a manifest, and can be called again
// for a newer one. It closes the connections that the new lists deny, and keeps all others. Each
// returned error concerns one service or address. Everything else takes effect, in particular all
// denials.
func (s *Server) Apply(f document.Forwarder) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	registry, err := transport.NewRegistry(f)
	err = errors.Join(err, s.Relay.Apply(f))
	services := map[spiffe.ID][]published{}
	for _, p := range f.Publish {
		owner, unknown := upstream.NewOwner(p.User)
		if unknown != nil {
			err = errors.Join(err, fmt.Errorf("owner of the upstream of %s: %w", p.ID, unknown))
		}
		services[p.ID] = append(services[p.ID], published{p, owner})
	}
	s.rules.Store(&rules{registry, services})
	s.Whois.SetUsers(func(uid uint32) bool {
		for _, ports := range services {
			if slices.ContainsFunc(ports, func(p published) bool { return p.owner.Is(uid) }) {
				return true
			}
		}
		return false
	})

	s.limits.Apply(f)
	list, own := acl.Compile(f.Publish), s.Identities()
	s.enforcer.SetRule(func(in *transport.Incoming) bool {
		allowed := s.Relay.Admits(in) || !in.Uplink && list.Allows(in.Target, "", in.Peer.ID, in.Peer.Leaf(), time.Now())
		return allowed && in.Peer.TrustedBy(own.Trust) && own.SVID(in.Target) != nil
	})
	s.ports.SetRule(func(k portKey) bool {
		return list.Allows(k.in.Target, k.port, k.in.Peer.ID, k.in.Peer.Leaf(), time.Now())
	})
	s.endLogins(list)
	s.checkEnds(list)
	for _, r := range s.running {
		if u, ok := r.ln.(*transport.Uplink); ok {
			u.Recheck()
		}
	}
	var errs []error
	if !s.draining.Load() {
		errs = s.listen(listenAts(f))
	}
	if err != nil {
		errs = append(errs, err)
	}
	return errs
}

// endsChecked is the maximum interval between two checks of the wall clock while a permission has
// an end. A timer alone is not sufficient: it does not notice that the clock was set or that the
// host was suspended.
const endsChecked = time.Minute

// checkEnds closes connections whose permission has expired. It runs again when the next permission
// expires.
func (s *Server) checkEnds(list acl.List) {
	if s.ends != nil {
		s.ends.Stop()
		s.ends = nil
	}
	now := time.Now()
	next := list.NextEnd(now)
	if next.IsZero() {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(min(next.Sub(now), endsChecked), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ends == timer {
			s.enforcer.Check()
			s.ports.Check()
			s.endLogins(list)
			s.checkEnds(list)
		}
	})
	s.ends = timer
}

// endLogins closes the connections of callers that have lost a login at a service since the last
// check. The sshd of the service would otherwise keep their sessions. Such a caller may connect
// again if the allow list permits it.
func (s *Server) endLogins(list acl.List) {
	former := s.logins
	s.logins = list.Logins(time.Now())
	if lost := former.Lost(s.logins); lost != nil {
		s.enforcer.Close(func(in *transport.Incoming) bool { return lost(in.Target, in.Peer.ID) })
	}
}

// Close stops accepting connections, and waits for open connections during the grace period. It
// then closes the remaining ones. It returns when all connections are closed.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkEnds(acl.List{})
	s.close(func(listenAt) bool { return true }, s.Grace)
	s.refused.Close()
	s.Access.Close()
}

// running is an open listener with its goroutines: one that accepts connections, one for each
// connection, and one for each stream.
type running struct {
	ln        listener
	accepting context.Context
	stop      context.CancelFunc // stops accepting connections
	ended     context.Context
	end       context.CancelFunc // closes all connections
	conns     sync.WaitGroup
	streams   *handover.Tasks
}

func (s *Server) start(ln listener) *running {
	r := &running{ln: ln, streams: handover.NewTasks()}
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
			r.conns.Add(1)
			s.connections.Go(func(context.Context) {
				defer r.conns.Done()
				s.serve(r, in)
			})
		}
	})
	return r
}

// finish refuses new connections and streams. Their peers try again until the next process is
// running. Streams that are being served have the grace period to end.
func (r *running) finish(grace time.Duration) {
	r.stop()
	r.streams.Close(grace)
	time.Sleep(transport.Flush)
	r.end()
}

// close closes the listener. It is called after finish.
func (r *running) close() {
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

// handshakes is the time that close waits for handshakes that have begun.
const handshakes = time.Second

// serve accepts the streams of one connection and serves each of them.
func (s *Server) serve(r *running, in *transport.Incoming) {
	// The code Stopping tells the caller that its unanswered streams were not served, so that it
	// can try them again.
	var cut atomic.Bool
	var unserved atomic.Int64 // ID of the first stream that was not served
	var denied atomic.Bool    // set before unserved is read, so that no stream is served from then on
	defer context.AfterFunc(r.ended, func() {
		if cut.Load() {
			in.Cut(wire.Reset, quic.StreamID(unserved.Load()))
		} else {
			in.Close(wire.Stopping)
		}
	})()
	release, ok := s.enforcer.Admit(in, func() {
		s.refuse(in, "", wire.Denied, "the allow list, a login, the trust roots or the revocation list changed")
		denied.Store(true)
		// A peer that has the right again by now is served on another connection.
		in.Cut(wire.Denied, quic.StreamID(unserved.Load()))
	})
	if !ok {
		s.refuse(in, "", wire.Denied, "not in the allow list")
		in.Close(wire.Denied)
		return
	}
	defer release()
	if s.Usage.Shedding(in.Peer.ID) {
		s.refuse(in, "", wire.Busy, "its connections have just been closed since memory is short")
		in.Close(wire.Busy)
		return
	}
	room := &s.quic
	if in.Transport != document.OverQUIC {
		room = &s.tcp
	}
	release, err := room.acquire(in.Peer.ID)
	if err != nil {
		s.refuse(in, "", wire.Busy, err.Error())
		in.Close(wire.Busy)
		return
	}
	defer release()
	defer in.Register(s.Usage, func() {
		s.refuse(in, "", wire.Busy, "memory is short, and nobody holds more of it")
		in.Close(wire.Busy)
	})()
	c := &served{in: in}
	s.live.Store(c, nil)
	defer s.live.Delete(c)
	if s.draining.Load() {
		c.leave()
	}
	if in.Uplink {
		defer s.Relay.Uplink(in, func() (func(), bool) {
			in.Usage.Opened.Add(1)
			in.Usage.Streams.Add(1)
			return func() { in.Usage.Streams.Add(-1); c.end() }, c.begin()
		})()
		in.Wait()
		return
	}
	peer := s.peers.of(in.Peer.ID)
	in.Limits = s.limits.Share(in.Target, in.Peer.ID)
	for {
		st, err := in.AcceptStream()
		if err != nil {
			return
		}
		in.Usage.Waiting.Store(true)
		done, err := peer.begin(in.Context())
		in.Usage.Waiting.Store(false)
		if err != nil {
			return
		}
		if !c.begin() {
			done(false)
			transport.Reset(st, wire.Stopping)
			continue
		}
		in.Usage.Opened.Add(1)
		release, ok := s.streams.Acquire(in.Peer.ID)
		if !ok {
			done(false)
			c.end()
			s.refuse(in, "", wire.Busy, fmt.Sprintf("has %d TCP connections and UDP sessions to this host", s.streams.Max()))
			transport.Reset(st, wire.Busy)
			continue
		}
		closed, err := in.Limits.Open()
		if err != nil {
			release()
			done(false)
			c.end()
			s.refuse(in, "", wire.OverLimit, err.Error())
			transport.Reset(st, wire.OverLimit)
			continue
		}
		unserved.Store(int64(st.StreamID()) + 1)
		ctx, ended, ok := r.streams.Begin()
		if ok && denied.Load() {
			ended()
			ok = false
		}
		if !ok {
			unserved.Store(int64(st.StreamID()))
			closed()
			release()
			c.end()
			done(false)
			transport.Reset(st, wire.Stopping)
			continue
		}
		in.Usage.Streams.Add(1)
		ends := &handover.Ends{}
		ends.Add(func() {
			if ctx.Err() != nil {
				cut.Store(true)
			}
			in.Usage.Streams.Add(-1)
			closed()
			release()
			c.end()
			ended()
		})
		go s.carry(ctx, r, in, st, done, ends)
	}
}
