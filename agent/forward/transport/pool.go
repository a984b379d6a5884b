package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

const (
	connIdle    = 5 * time.Minute  // time after which a connection without streams is closed
	linger      = 2 * time.Second  // connIdle of a retired connection
	dialTimeout = 10 * time.Second // time limit for connecting to any endpoint of a target
)

// Route describes how one caller on this host can reach a target: the addresses of the forwarders
// that publish the target, and the relays that lead to them.
type Route struct {
	Caller    spiffe.ID
	Target    spiffe.Dialable
	Port      string               // name of the port if the target has several
	Endpoints []document.Addresses // addresses of each forwarder that publishes Target; streams are spread over the first few that work
	Via       []Via                // paths through relays to such forwarders
	Transport document.Transport
	Origin    wire.Origin // of streams of type wire.Entered
}

// paths returns the number of ways to reach the target: endpoints and paths through relays.
func (r Route) paths() int { return len(r.Endpoints) + len(r.Via) }

// Pool keeps connections to other forwarders, and opens streams on them for the callers on this
// host. It has one connection for each combination of the caller's SVID, target and endpoint, and
// spreads the streams of a route over the endpoints. When the SVID is renewed, new streams use a
// new connection, and the old one closes after its last stream. A Pool is safe for concurrent use.
type Pool struct {
	identities func() *hostdir.SVIDSet
	quic       [2]*quic.Transport // new connections use the first; migrate moves them to the second
	ctx        context.Context
	cancel     context.CancelFunc
	dials      singleflight.Group
	usage      *usage.Table
	random     func(n int) int
	near       time.Duration
	retryQUIC  time.Duration
	outside    Outside // addresses of the first socket as relays see them
	punches    *rate.Limiter

	mu      sync.Mutex
	targets map[targetKey]*target
	paths   map[string]*path      // forwarders that could not be reached over UDP; key: their joined addresses
	conns   map[*conn]struct{}    // all open connections
	punched map[punchKey]*punched // direct paths that relays may make possible
	busy    sync.WaitGroup        // connections and dials
}

type targetKey struct {
	caller spiffe.ID
	target spiffe.Dialable
}

// target is the state of a target as one caller reaches it.
type target struct {
	endpoints map[string]*endpoint // key: the joined addresses, or the path through relays
	relays    relayChoice
}

// NewPool returns an empty pool, which opens its own UDP sockets. The function identities returns
// the current SVID set of this host. The pool adds its connections to the given table, which can
// close them when memory is short. The caller must call Close.
func NewPool(identities func() *hostdir.SVIDSet, connections *usage.Table) (*Pool, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool{
		identities: identities,
		ctx:        ctx,
		cancel:     cancel,
		usage:      connections,
		random:     rand.IntN,
		near:       near,
		retryQUIC:  retryQUIC,
		punches:    rate.NewLimiter(punchRate, punchRate),
		punched:    map[punchKey]*punched{},
		targets:    map[targetKey]*target{},
		paths:      map[string]*path{},
		conns:      map[*conn]struct{}{},
	}
	var sockets [len(p.quic)]udpSocket
	for i := range p.quic {
		var err error
		if sockets[i], err = listenUDP(); err != nil {
			p.closeSockets()
			return nil, fmt.Errorf("forwarder: %w", err)
		}
		if i > 0 {
			sockets[i].passResets(sockets[0])
		}
		p.quic[i] = &quic.Transport{Conn: sockets[i]}
	}
	p.busy.Go(p.watch)
	p.busy.Go(p.watchNetwork)
	return p, nil
}

// Close closes all connections, and returns when all goroutines of the pool have ended.
func (p *Pool) Close() {
	p.mu.Lock()
	p.cancel()
	for c := range p.conns {
		closeWith(c.link, wire.Stopping)
	}
	p.mu.Unlock()
	p.busy.Wait()
	p.closeSockets()
}

func (p *Pool) closeSockets() {
	for _, t := range p.quic {
		if t != nil {
			t.Close()
			t.Conn.Close()
		}
	}
}

// Stream carries one TCP connection or one UDP session to a target.
type Stream struct {
	wire.Stream
	pool  *Pool
	conn  *conn
	begun time.Time
	only  bool // the route has no other endpoint
	once  sync.Once
}

// Open opens a stream of the given type to the target of a route, on an existing connection if
// there is one. The caller may write at once, but must call Answer to learn whether the target has
// accepted the stream, and Release at the end.
func (p *Pool) Open(ctx context.Context, r Route, carries wire.StreamType) (*Stream, error) {
	return p.open(ctx, r, wire.Preamble{Type: carries, Target: r.Target.ID(), Port: r.Port, Origin: r.Origin}.Append(nil))
}

// open is like Open, but takes the encoded preamble with which the stream begins.
func (p *Pool) open(ctx context.Context, r Route, preamble []byte) (*Stream, error) {
	for {
		c, fresh, err := p.acquire(ctx, r)
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		st, err := c.openUnlessLost(ctx, preamble)
		if err == nil {
			return &Stream{Stream: st, pool: p, conn: c, begun: begun, only: r.paths() == 1}, nil
		}
		p.release(c)
		if c.lost.Err() != nil && ctx.Err() == nil {
			continue // on another path
		}
		// A cached connection may be gone; a new one reports the reason.
		if fresh || ctx.Err() != nil || errors.Is(err, ErrFull) {
			return nil, err
		}
		p.giveUp(c)
	}
}

// Probe returns nil if the target of a route can be reached. It uses an existing connection of the
// pool or makes a new one, and sends nothing on it. The result fresh says whether the connection is
// new.
func (p *Pool) Probe(ctx context.Context, r Route) (fresh bool, err error) {
	c, fresh, err := p.acquire(ctx, r)
	if err == nil {
		p.release(c)
	}
	return fresh, err
}

// Answer waits until the target's forwarder has connected the stream to the service. After an
// error, the stream has ended. Common errors are:
//
//   - *RefusedError: the forwarder refused the stream.
//   - context.DeadlineExceeded: the forwarder did not answer before ctx ended.
//   - context.Canceled: this side gave up.
//   - ErrLost: the connection was lost, and the stream can be opened again.
//   - ErrCut: a relay lost the forwarder, for example because that is being restarted. It is not
//     known whether the forwarder served the stream.
func (s *Stream) Answer(ctx context.Context) error {
	var answer [1]byte
	stop := context.AfterFunc(ctx, func() { s.SetReadDeadline(time.Now()) })
	interrupted := make(chan struct{})
	stopLost := context.AfterFunc(s.conn.lost, func() { s.SetReadDeadline(time.Now()); close(interrupted) })
	n, err := s.Read(answer[:])
	if n == 1 {
		err = nil // Read may return the answer together with the end of the stream
	}
	if !stopLost() {
		<-interrupted
		s.SetReadDeadline(time.Time{})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("%s: %w", s.conn.peer.ID, ErrLost)
		}
	}
	if !stop() {
		err = fmt.Errorf("%s: no answer: %w", s.conn.peer.ID, ctx.Err())
	}
	if err == nil && n == 1 && answer[0] == wire.Connected {
		s.pool.recordResult(s, true)
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s: answer %d, want %d", s.conn.peer.ID, answer[0], wire.Connected)
	}
	// A refusal ends both directions of the stream, or the whole connection. It is random which of
	// these ends is noticed first. This side may also have reset the stream in response.
	if cause := context.Cause(s.Context()); cause != nil && !givenUp(cause) {
		err = cause
	}
	Reset(s.Stream, wire.Reset)
	if errors.Is(err, ErrLost) {
		return err
	}
	if givenUp(err) || errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	err = s.Explain(err)
	var refused *RefusedError
	switch {
	case !errors.As(err, &refused) || refused.Code != wire.Reset:
		s.pool.recordResult(s, false)
	case s.conn.endpoint.via != nil:
		err = fmt.Errorf("%s: %w", s.conn.peer.ID, ErrCut)
	}
	return err
}

// givenUp reports whether an error means that this side has already finished with the stream.
func givenUp(err error) bool {
	var reset *quic.StreamError
	return errors.Is(err, quic.ErrStreamClosed) || errors.As(err, &reset) && !reset.Remote
}

// Explain returns a *RefusedError if err contains a reason that the target's forwarder gave for
// ending the stream. It returns any other error unchanged.
func (s *Stream) Explain(err error) error {
	var app *quic.ApplicationError
	if errors.As(err, &app) && app.Remote && slices.Contains([]wire.Code{wire.Reset, wire.Denied}, wire.Code(app.ErrorCode)) {
		if first, ok := wire.ParseUnserved(app.ErrorMessage); ok && int64(s.StreamID()) >= first {
			return &RefusedError{wire.Stopping, s.conn.peer.ID}
		}
	}
	return explain(err, s.conn.peer.ID)
}

// Transport returns the transport of the stream's connection. For a direct connection that a relay
// has introduced, it returns Punched.
func (s *Stream) Transport() document.Transport { return s.conn.path() }

// Forwarder returns the address of the remote forwarder, for logs and status.
func (s *Stream) Forwarder() string { return s.conn.address }

// Usage returns the counters of the stream's connection.
func (s *Stream) Usage() *usage.Conn { return s.conn.usage }

// Lost returns a context that ends when the stream's connection has become silent and another path
// has replaced it for new streams. The stream itself may still recover.
func (s *Stream) Lost() context.Context { return s.conn.lost }

// Mux returns the Mux of the connection that carries the stream. If the stream is for a UDP
// session, the Mux carries the session's datagrams.
func (s *Stream) Mux() *datagram.Mux { return s.conn.mux }

// Release tells the pool that the stream is no longer used.
func (s *Stream) Release() { s.once.Do(func() { s.pool.release(s.conn) }) }

func (p *Pool) release(c *conn) {
	c.release()
	p.count(c.endpoint, -1)
}

// recordResult records whether the endpoint of a stream works, and its latency. The pool avoids a
// failed endpoint for a while if the target has others.
func (p *Pool) recordResult(s *Stream, connected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, e := time.Now(), s.conn.endpoint
	if connected {
		e.succeed(s.conn, now.Sub(s.begun), now)
		return
	}
	if s.only {
		return // another connection would go to the same forwarder
	}
	e.fail(now)
	if e.current == s.conn {
		e.current = nil
		s.conn.retire()
	}
}

// acquire returns a connection for a route, and counts one more stream on it. If there is no
// connection, acquire makes one. The result fresh is true if the connection is new.
func (p *Pool) acquire(ctx context.Context, r Route) (c *conn, fresh bool, err error) {
	for {
		c, fresh, err = p.acquireOnce(ctx, r)
		if !errors.Is(err, errReplaced) || ctx.Err() != nil {
			return c, fresh, err
		}
	}
}

// acquireOnce is like acquire, but returns errReplaced if a new connection was retired before its
// first stream.
func (p *Pool) acquireOnce(ctx context.Context, r Route) (c *conn, fresh bool, err error) {
	set := p.identities()
	svid := set.SVID(r.Caller)
	if svid == nil {
		if set.Trust != nil {
			if err := set.Trust.Revocations().CheckID(r.Caller); err != nil {
				return nil, false, err
			}
		}
		return nil, false, fmt.Errorf("%s: %w", r.Caller, ErrNoIdentity)
	}
	if !svid.Valid(time.Now()) {
		leaf := svid.Cert.Leaf
		return nil, false, fmt.Errorf("%s: %w: valid from %s to %s", r.Caller, ErrExpired, leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	order := p.order(r, svid)
	if len(order) == 0 {
		return nil, false, fmt.Errorf("%s: no endpoint", r.Target.ID())
	}
	first := order[0]
	p.count(first, 1)
	defer func() {
		if c == nil || c.endpoint != first {
			p.count(first, -1)
		}
		if c != nil && c.endpoint != first {
			p.count(c.endpoint, 1)
		}
	}()
	if c := p.current(first, svid, r.Transport); c != nil && c.acquire() {
		p.seekDirect(r, c)
		return c, false, nil
	}
	made, err := p.connect(ctx, r, svid, order)
	if err != nil {
		return nil, true, err
	}
	if !made.acquire() {
		return nil, true, fmt.Errorf("%s: %w", r.Target.ID(), errReplaced)
	}
	p.seekDirect(r, made)
	return made, true, nil
}

// Reasons on this host why a stream cannot be opened.
var (
	ErrNoIdentity = errors.New("no SVID delivered yet")
	ErrExpired    = errors.New("SVID not valid now")
	ErrFull       = errors.New("no further stream")
	ErrLost       = errors.New("no answer over UDP, where another path has taken over")
	ErrCut        = errors.New("no answer through the relay, which lost the forwarder")
)

// errReplaced is returned for a connection that was retired while it was made. This happens when
// the caller's SVID is renewed or the forwarder leaves.
var errReplaced = errors.New("connection was replaced while it was made")

// giveUp retires a connection over TCP or through a relay after a stream could not be opened on it.
// The next stream then makes a new connection.
func (p *Pool) giveUp(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.transport != document.OverQUIC && c.endpoint.current == c {
		c.endpoint.current = nil
		c.retire()
	}
}

// current returns the connection of an endpoint if new streams may use it, and nil otherwise. It
// retires a connection that is no longer usable. While it is in doubt whether UDP still reaches the
// endpoint, current returns nil but keeps the connection.
func (p *Pool) current(e *endpoint, svid *trust.SVID, over document.Transport) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := e.current
	if c == nil {
		return nil
	}
	if c.usable(svid) && (over == document.AnyTransport || over == c.transport || c.transport == Relayed) {
		if c.doubt != sure && over == document.AnyTransport {
			return nil
		}
		return c
	}
	e.current.retire()
	e.current = nil
	return nil
}
