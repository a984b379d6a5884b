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
	linkIdle    = 5 * time.Minute  // a link without streams is closed after it
	linger      = 2 * time.Second  // the same, of a link that is retired
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

	mu    sync.Mutex
	slots map[slotKey]*slot
	links map[*link]struct{} // all that are not closed
	busy  sync.WaitGroup     // links and dials
}

type slotKey struct{ caller, target florete.ID }

// slot is what is known of one caller's way to one target.
type slot struct {
	current *link
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
		slots:      map[slotKey]*slot{},
		links:      map[*link]struct{}{},
	}, nil
}

// Close ends all connections and returns when nothing runs any more.
func (p *Pool) Close() {
	p.mu.Lock()
	p.cancel()
	for l := range p.links {
		closeWith(l.conn, wire.Stopping)
	}
	p.mu.Unlock()
	p.busy.Wait()
	p.quic.Close()
	p.socket.Close()
}

// Stream is one TCP connection, or UDP flow, on its way to the target.
type Stream struct {
	*quic.Stream
	pool *Pool
	link *link
	key  slotKey
	only bool // the route has no other endpoint
	once sync.Once
}

// Open begins a stream. What the target's side says to it comes with Answer;
// bytes may be written before. Release must be called in the end.
func (p *Pool) Open(ctx context.Context, r Route, flow wire.Flow) (*Stream, error) {
	for {
		l, fresh, err := p.acquire(ctx, r)
		if err != nil {
			return nil, err
		}
		st, err := l.open(flow)
		if err == nil {
			return &Stream{Stream: st, pool: p, link: l, key: slotKey{r.Caller, r.Target.ID()}, only: len(r.Endpoints) == 1}, nil
		}
		l.release()
		// A connection kept from earlier may have gone; one just made says why.
		if fresh || ctx.Err() != nil || errors.Is(err, ErrFull) {
			return nil, err
		}
	}
}

// Probe makes a connection for a route, unless there is one, and sends nothing on it.
func (p *Pool) Probe(ctx context.Context, r Route) error {
	l, _, err := p.acquire(ctx, r)
	if err == nil {
		l.release()
	}
	return err
}

// Answer waits until the target's side has connected to its upstream. The error
// is a RefusedError when it said why not, context.DeadlineExceeded when it said
// nothing, and context.Canceled when this side gave up. The stream is at its end then.
func (s *Stream) Answer(ctx context.Context) error {
	var answer [1]byte
	stop := context.AfterFunc(ctx, func() { s.SetReadDeadline(time.Now()) })
	n, err := s.Read(answer[:])
	if n == 1 {
		err = nil // the end of the stream may come with it
	}
	if !stop() {
		err = fmt.Errorf("%s: no answer: %w", s.link.peer.ID, ctx.Err())
	}
	if err == nil && answer[0] == wire.Connected {
		s.pool.learn(s, true)
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s: answer %d, want %d", s.link.peer.ID, answer[0], wire.Connected)
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
		s.pool.learn(s, false)
	}
	return err
}

// givenUp tells whether a stream has ended because this side is done with it.
func givenUp(err error) bool {
	var reset *quic.StreamError
	return errors.Is(err, quic.ErrStreamClosed) || errors.As(err, &reset) && !reset.Remote
}

// Explain makes an error of the stream a RefusedError where the target's side said
// why.
func (s *Stream) Explain(err error) error {
	var app *quic.ApplicationError
	if errors.As(err, &app) && app.Remote && wire.Code(app.ErrorCode) == wire.Reset {
		if first, ok := wire.ParseUnserved(app.ErrorMessage); ok && int64(s.StreamID()) >= first {
			return &RefusedError{wire.Stopping, s.link.peer.ID}
		}
	}
	return explain(err, s.link.peer.ID)
}

// Usage counts what the stream's connection holds.
func (s *Stream) Usage() *usage.Conn { return s.link.usage }

// Flows are the connection's, for datagrams of a UDP flow.
func (s *Stream) Flows() *datagram.Conn { return s.link.flows }

// Release tells that the stream is no longer used.
func (s *Stream) Release() { s.once.Do(s.link.release) }

// learn remembers which endpoint works. One that fails is not used for the next
// stream when there is another.
func (p *Pool) learn(s *Stream, connected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := p.slots[s.key]
	if connected {
		slot.good, slot.at = s.link.endpoint, s.link.at
		return
	}
	if s.only {
		return // another connection would go to the same forwarder
	}
	slot.good, slot.avoid = "", s.link.endpoint
	if slot.current == s.link {
		slot.current = nil
		s.link.retire()
	}
}

// acquire finds or makes the link for a route and counts a stream in.
func (p *Pool) acquire(ctx context.Context, r Route) (l *link, fresh bool, err error) {
	svid := p.identities().SVID(r.Caller)
	if svid == nil {
		return nil, false, fmt.Errorf("%s: %w", r.Caller, ErrNoIdentity)
	}
	if !svid.Valid(time.Now()) {
		leaf := svid.Cert.Leaf
		return nil, false, fmt.Errorf("%s: %w: valid from %s to %s", r.Caller, ErrExpired, leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if l := p.current(r, svid); l != nil && l.acquire() {
		return l, false, nil
	}
	key := r.Caller.String() + " " + r.Target.ID().String()
	done := p.dials.DoChan(key, func() (any, error) {
		if l := p.current(r, svid); l != nil && l.acquire() { // made since it was looked for
			l.release()
			return l, nil
		}
		return p.connect(r, svid)
	})
	select {
	case res := <-done:
		if res.Err != nil {
			return nil, true, res.Err
		}
		l := res.Val.(*link)
		if !l.acquire() {
			return nil, true, fmt.Errorf("%s: connection was replaced while it was made", r.Target.ID())
		}
		return l, true, nil
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

// current is the link in use; one that must not be used any more is retired.
func (p *Pool) current(r Route, svid *identity.SVID) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[slotKey{r.Caller, r.Target.ID()}]
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
