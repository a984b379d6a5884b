package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/sync/singleflight"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/identity"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
)

const (
	connIdle    = 5 * time.Minute  // a connection without streams is closed after it
	linger      = 2 * time.Second  // the same, of a connection that is retired
	dialTimeout = 10 * time.Second // for all endpoints of a target together
)

// Route is who wants to reach what, and where it is published.
type Route struct {
	Caller    florete.ID
	Target    florete.Dialable
	Endpoints []florete.Addresses // UDP, of each forwarder that publishes it
}

// Pool keeps the connections that this host's identities use: one per caller
// SVID, target SVID and endpoint. When the caller's SVID is renewed, new streams
// get a new connection and the old one closes with its last stream.
type Pool struct {
	identities func() *identity.Set
	socket     *net.UDPConn
	quic       *quic.Transport
	ctx        context.Context
	cancel     context.CancelFunc
	dials      singleflight.Group
	usage      *usage.Table

	mu      sync.Mutex
	targets map[targetKey]*target
	conns   map[*conn]struct{} // all that are not closed
	busy    sync.WaitGroup     // connections and dials
}

type targetKey struct {
	caller florete.ID
	target florete.Dialable
}

// target is what is known of one caller's way to one target.
type target struct {
	current *conn
	good    string         // address that connected last
	at      netip.AddrPort // where that led
	avoid   string         // address that failed last
}

// NewPool makes an empty pool on a UDP socket of its own. Its connections are in the
// table.
func NewPool(identities func() *identity.Set, connections *usage.Table) (*Pool, error) {
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, fmt.Errorf("forwarder: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Pool{
		identities: identities,
		socket:     socket,
		quic:       &quic.Transport{Conn: socket},
		ctx:        ctx,
		cancel:     cancel,
		usage:      connections,
		targets:    map[targetKey]*target{},
		conns:      map[*conn]struct{}{},
	}, nil
}

// Close ends all connections and returns when nothing runs any more.
func (p *Pool) Close() {
	p.mu.Lock()
	p.cancel()
	for c := range p.conns {
		closeWith(c.quic, wire.Stopping)
	}
	p.mu.Unlock()
	p.busy.Wait()
	p.quic.Close()
	p.socket.Close()
}

// Stream is one TCP connection, or UDP session, on its way to the target.
type Stream struct {
	*quic.Stream
	pool *Pool
	conn *conn
	key  targetKey
	only bool // the route has no other endpoint
	once sync.Once
}

// Open begins a stream. The target's side answers with Answer;
// bytes may be written before. Release must be called in the end.
func (p *Pool) Open(ctx context.Context, r Route, carries wire.StreamType) (*Stream, error) {
	for {
		c, fresh, err := p.acquire(ctx, r)
		if err != nil {
			return nil, err
		}
		st, err := c.open(carries)
		if err == nil {
			return &Stream{Stream: st, pool: p, conn: c, key: targetKey{r.Caller, r.Target}, only: len(r.Endpoints) == 1}, nil
		}
		c.release()
		// A connection kept from earlier may have gone; one just made says why.
		if fresh || ctx.Err() != nil || errors.Is(err, ErrFull) {
			return nil, err
		}
	}
}

// Probe makes a connection for a route, unless there is one, and sends nothing on it.
func (p *Pool) Probe(ctx context.Context, r Route) error {
	c, _, err := p.acquire(ctx, r)
	if err == nil {
		c.release()
	}
	return err
}

// Answer waits until the target's side has connected to its upstream. The error
// is a RefusedError when it refused, context.DeadlineExceeded when it was
// silent, and context.Canceled when this side gave up. The stream is at its end then.
func (s *Stream) Answer(ctx context.Context) error {
	var answer [1]byte
	stop := context.AfterFunc(ctx, func() { s.SetReadDeadline(time.Now()) })
	n, err := s.Read(answer[:])
	if n == 1 {
		err = nil // the end of the stream may come with it
	}
	if !stop() {
		err = fmt.Errorf("%s: no answer: %w", s.conn.peer.ID, ctx.Err())
	}
	if err == nil && answer[0] == wire.Connected {
		s.pool.recordResult(s, true)
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s: answer %d, want %d", s.conn.peer.ID, answer[0], wire.Connected)
	}
	// A refusal ends both directions, of the stream or of all the connection's. Which
	// one is noticed first is chance, and this side may have reset the stream in turn.
	if cause := context.Cause(s.Context()); cause != nil && !givenUp(cause) {
		err = cause
	}
	Reset(s.Stream, wire.Reset)
	if givenUp(err) || errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	err = s.Explain(err)
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Code != wire.Reset {
		s.pool.recordResult(s, false)
	}
	return err
}

// givenUp reports whether a stream has ended because this side is done with it.
func givenUp(err error) bool {
	var reset *quic.StreamError
	return errors.Is(err, quic.ErrStreamClosed) || errors.As(err, &reset) && !reset.Remote
}

// Explain makes an error of the stream a RefusedError where the target's side gave
// why.
func (s *Stream) Explain(err error) error {
	var app *quic.ApplicationError
	if errors.As(err, &app) && app.Remote && wire.Code(app.ErrorCode) == wire.Reset {
		if first, ok := wire.ParseUnserved(app.ErrorMessage); ok && int64(s.StreamID()) >= first {
			return &RefusedError{wire.Stopping, s.conn.peer.ID}
		}
	}
	return explain(err, s.conn.peer.ID)
}

// Usage counts what the stream's connection holds.
func (s *Stream) Usage() *usage.Conn { return s.conn.usage }

// Mux is the connection's, for datagrams of a UDP session.
func (s *Stream) Mux() *datagram.Mux { return s.conn.mux }

// Release ends the use of the stream.
func (s *Stream) Release() { s.once.Do(s.conn.release) }

// recordResult remembers which endpoint works. One that fails is not used for the next
// stream when there is another.
func (p *Pool) recordResult(s *Stream, connected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.targets[s.key]
	if connected {
		known.good, known.at = s.conn.endpoint, s.conn.at
		return
	}
	if s.only {
		return // another connection would go to the same forwarder
	}
	known.good, known.avoid = "", s.conn.endpoint
	if known.current == s.conn {
		known.current = nil
		s.conn.retire()
	}
}

// acquire finds or makes the connection for a route and counts a stream in.
func (p *Pool) acquire(ctx context.Context, r Route) (c *conn, fresh bool, err error) {
	svid := p.identities().SVID(r.Caller)
	if svid == nil {
		return nil, false, fmt.Errorf("%s: %w", r.Caller, ErrNoIdentity)
	}
	if !svid.Valid(time.Now()) {
		leaf := svid.Cert.Leaf
		return nil, false, fmt.Errorf("%s: %w: valid from %s to %s", r.Caller, ErrExpired, leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if c := p.current(r, svid); c != nil && c.acquire() {
		return c, false, nil
	}
	key := r.Caller.String() + " " + r.Target.ID().String()
	done := p.dials.DoChan(key, func() (any, error) {
		if c := p.current(r, svid); c != nil && c.acquire() { // made since it was looked for
			c.release()
			return c, nil
		}
		return p.connect(r, svid)
	})
	select {
	case res := <-done:
		if res.Err != nil {
			return nil, true, res.Err
		}
		c := res.Val.(*conn)
		if !c.acquire() {
			return nil, true, fmt.Errorf("%s: connection was replaced while it was made", r.Target.ID())
		}
		return c, true, nil
	case <-ctx.Done():
		return nil, true, ctx.Err()
	}
}

// Local reasons why nothing can be opened.
var (
	ErrNoIdentity = errors.New("no SVID delivered yet")
	ErrExpired    = errors.New("SVID not valid now")
	ErrFull       = errors.New("no further stream")
)

// current is the connection in use; one that must not be used any more is retired.
func (p *Pool) current(r Route, svid *florete.SVID) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.targets[targetKey{r.Caller, r.Target}]
	if s == nil || s.current == nil {
		return nil
	}
	if s.current.usable(svid) && slices.Contains(slices.Concat(r.Endpoints...), s.current.endpoint) {
		return s.current
	}
	s.current.retire()
	s.current = nil
	return nil
}
