package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// link is the transport of a connection, on which a conn opens its streams. It hides the difference
// between one QUIC connection and a set of TCP connections.
type link interface {
	OpenStream(context.Context) (wire.Stream, error)
	CloseWithError(quic.ApplicationErrorCode, string) error
	Context() context.Context // ends with the connection
	stats() usage.Stats
	// trusted reports whether the given roots accept all peers of the connection.
	trusted(*trust.Roots) bool
	// issuers returns the last certificate of each peer's chain.
	issuers() []*x509.Certificate
}

// conn is a connection to one endpoint of a target, made with one SVID of a caller. Over TCP it
// consists of as many TCP connections as its streams need.
type conn struct {
	link
	transport document.Transport
	route     Route
	svid      *trust.SVID
	peer      Peer
	endpoint  *endpoint
	outer     *conn          // connection to the relay; nil if the connection is direct
	address   string         // address of the endpoint as written in the route, or names of the relays
	at        netip.AddrPort // resolved form of address
	source    netip.Addr     // local address; only used by watch and follow
	made      time.Time
	until     time.Time
	mux       *datagram.Mux
	usage     *usage.Conn // set by install

	doubt    doubt           // guarded by the pool's lock
	measured measured        // only used by watch
	finding  bool            // findTarget is running; guarded by the pool's lock
	lost     context.Context // see Stream.Lost
	lose     context.CancelFunc

	mu      sync.Mutex
	streams int
	retired bool // accepts no new streams; closed after the last one
	idle    *time.Timer
}

// usable reports whether a caller with this SVID may open new streams on the connection.
func (c *conn) usable(svid *trust.SVID) bool {
	return c.svid == svid && c.Context().Err() == nil && time.Now().Before(c.until)
}

// silent reports whether the connection is silent: it has received no packet for longer than a
// working peer would take to send one. For a connection through a relay, silent checks the
// connection to the relay.
func (c *conn) silent(now time.Time) bool {
	if c.outer != nil {
		return c.outer.Context().Err() != nil || c.outer.silent(now)
	}
	received := c.usage.Received()
	return c.transport == document.OverQUIC && !received.IsZero() && now.Sub(received) > silence
}

// acquire counts one more stream on the connection. It returns false if the connection is retired.
func (c *conn) acquire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired {
		return false
	}
	c.streams++
	c.usage.Streams.Add(1)
	c.idle.Stop()
	return true
}

func (c *conn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usage.Streams.Add(-1)
	if c.streams--; c.streams == 0 {
		c.idle.Reset(c.idleTimeout())
	}
}

// busy reports whether the connection has streams.
func (c *conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams > 0
}

// retire makes the connection accept no new streams. The connection closes shortly after its last
// stream has ended.
func (c *conn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = true
	if c.streams == 0 {
		c.idle.Reset(c.idleTimeout())
	}
}

// idleTimeout returns the time for which the connection stays open without streams. Even a retired
// connection stays open for a moment. QUIC does not report whether the last bytes of a stream have
// arrived, and closing the connection would discard them.
func (c *conn) idleTimeout() time.Duration {
	if c.retired {
		return linger
	}
	return connIdle
}

func (c *conn) closeIdle() {
	c.mu.Lock()
	c.retired = c.retired || c.streams == 0
	unused := c.streams == 0
	c.mu.Unlock()
	if unused {
		closeWith(c.link, wire.Done)
	}
}

// quicLink is a link over QUIC.
type quicLink struct {
	*quic.Conn
	peer   Peer
	mux    *datagram.Mux
	tasks  *sync.WaitGroup // goroutines that end when the connection ends
	checks checks
	paths  paths
}

func (l *quicLink) OpenStream(context.Context) (wire.Stream, error) {
	st, err := l.Conn.OpenStream()
	if err != nil {
		return nil, err
	}
	return st, nil
}

func (l *quicLink) stats() usage.Stats           { return usage.OfQUIC(l.Conn)() }
func (l *quicLink) trusted(t *trust.Roots) bool  { return l.peer.TrustedBy(t) }
func (l *quicLink) issuers() []*x509.Certificate { return []*x509.Certificate{l.peer.issuer()} }

// open opens a stream and sends the preamble on it. It returns ErrFull at once if the peer allows
// no further stream, rather than wait for another stream to end.
func (c *conn) open(ctx context.Context, preamble []byte) (wire.Stream, error) {
	st, err := c.OpenStream(ctx)
	var limit *quic.StreamLimitReachedError
	full := errors.As(err, &limit)
	c.usage.Full.Store(full)
	if full {
		return nil, fmt.Errorf("%s: %w on the connection to %s: %d are in use, %d allowed: flor status shows them",
			c.peer.ID, ErrFull, c.address, c.usage.Streams.Load()-1, MaxStreams)
	}
	if err != nil {
		return nil, explain(err, c.peer.ID)
	}
	if _, err = st.Write(preamble); err != nil {
		Reset(st, wire.Reset)
		return nil, explain(err, c.peer.ID)
	}
	c.usage.Opened.Add(1)
	return st, nil
}

// openUnlessLost is like open, but also ends when the pool makes streams leave the path of the
// connection. A connection through relays may need another handshake for the stream, which a silent
// relay would not answer.
func (c *conn) openUnlessLost(ctx context.Context, preamble []byte) (wire.Stream, error) {
	if c.outer == nil {
		return c.open(ctx, preamble) // does not wait
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.lost, cancel)()
	return c.open(ctx, preamble)
}

// tlsTo returns the TLS configuration for a connection to the target of a route. The configuration
// uses the current trust roots of this host.
func (p *Pool) tlsTo(r Route, alpn string, svid *trust.SVID, address string, peer *Peer) *tls.Config {
	return tlsTo(r.Target, alpn, svid, p.identities().Trust, address, peer)
}

// tlsTo returns the TLS configuration for a connection to a target. The connection accepts only a
// certificate of that target. The argument peer points to a variable in which the handshake stores
// the verified peer.
func tlsTo(target spiffe.Dialable, alpn string, svid *trust.SVID, roots *trust.Roots, address string, peer *Peer) *tls.Config {
	want := target.ID()
	config := tlsConfig(alpn, svid, func(cs tls.ConnectionState) error {
		var err error
		*peer, err = verify(roots, cs, x509.ExtKeyUsageServerAuth)
		if err == nil && peer.ID != want {
			err = fmt.Errorf("certificate is for %s", peer.ID)
		}
		if err != nil {
			return &ImpostorError{Endpoint: address, Want: want, Claims: peer.ID, Err: err}
		}
		return nil
	})
	config.ServerName = spiffe.SNI(target)
	config.InsecureSkipVerify = true // skips host names; VerifyConnection checks chain and SPIFFE ID
	return config
}

// dialQUIC connects to an endpoint of a target over QUIC.
func (p *Pool) dialQUIC(ctx context.Context, to destination) (*conn, error) {
	source, err := sourceTo(to.at)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", to.address, err)
	}
	to.source = source
	conf := quicConfig()
	conf.MaxIncomingStreams = -1
	conf.MaxIncomingUniStreams = 2 // one stream returns checks, the other carries wire.Leave
	var peer Peer
	q, err := p.quic[to.socket].Dial(ctx, net.UDPAddrFromAddrPort(to.at), p.tlsTo(to.route, wire.ALPN, to.svid, to.address, &peer), conf)
	if err != nil {
		want := to.route.Target.ID()
		return nil, fmt.Errorf("%s at %s: %w", want, to.address, explain(err, want))
	}
	l := &quicLink{Conn: q, peer: peer, mux: datagram.NewMux(q, &p.busy), tasks: &p.busy}
	l.paths.socket.Store(int32(to.socket))
	return to.conn(document.OverQUIC, l, peer, l.mux), nil
}

// destination describes one endpoint of a target to connect to, and the SVID to connect with.
type destination struct {
	route    Route
	svid     *trust.SVID
	endpoint *endpoint
	address  string
	at       netip.AddrPort
	source   netip.Addr // local address from which packets are sent to at
	socket   int        // index of the pool's socket; used for QUIC only
}

func (to destination) conn(over document.Transport, l link, peer Peer, mux *datagram.Mux) *conn {
	c := &conn{
		link: l, transport: over, route: to.route, svid: to.svid, peer: peer, endpoint: to.endpoint, address: to.address, at: to.at, source: to.source,
		made: time.Now(), until: earliest(to.svid, peer), mux: mux,
	}
	c.lost, c.lose = context.WithCancel(context.Background())
	c.idle = time.AfterFunc(connIdle, c.closeIdle)
	return c
}

// sourceTo returns the local address from which this host sends packets to another address. It
// returns an error if there is no route, for example because the host has no IPv6. It creates a
// socket but sends nothing.
func sourceTo(at netip.AddrPort) (netip.Addr, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr(), nil
}

// ImpostorError means that an endpoint did not prove that it is the wanted target. Claims is the
// SPIFFE ID in the endpoint's certificate, which is not proven.
type ImpostorError struct {
	Endpoint     string
	Want, Claims spiffe.ID
	Err          error
}

func (e *ImpostorError) Error() string {
	return fmt.Sprintf("endpoint %s is not %s: %v", e.Endpoint, e.Want, e.Err)
}

func (e *ImpostorError) Unwrap() error { return e.Err }
