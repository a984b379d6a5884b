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

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
)

// conn is one connection to one endpoint of a target, made with one SVID.
type conn struct {
	quic     *quic.Conn
	svid     *florete.SVID
	peer     Peer
	endpoint string         // as the route has it
	at       netip.AddrPort // where that led
	until    time.Time
	mux      *datagram.Mux
	usage    *usage.Conn // once it is installed

	mu      sync.Mutex
	streams int
	retired bool // takes no new streams; closed with its last one
	idle    *time.Timer
}

// usable reports whether new streams may go over the connection with svid.
func (c *conn) usable(svid *florete.SVID) bool {
	return c.svid == svid && c.quic.Context().Err() == nil && time.Now().Before(c.until)
}

// acquire counts a stream in, unless the connection is retired.
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

// retire takes no new streams; the connection is closed some time after its last one.
func (c *conn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = true
	if c.streams == 0 {
		c.idle.Reset(c.idleTimeout())
	}
}

// idleTimeout is how long the connection stays without streams. QUIC does not report whether the last
// bytes of a stream have arrived, and closing would take them back.
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
		closeWith(c.quic, wire.Done)
	}
}

// open begins a stream to the target. It does not wait for others to end.
func (c *conn) open(carries wire.StreamType) (*quic.Stream, error) {
	st, err := c.quic.OpenStream()
	var limit *quic.StreamLimitReachedError
	full := errors.As(err, &limit)
	c.usage.Full.Store(full)
	if full {
		return nil, fmt.Errorf("%s: %w on the connection to %s: %d are in use, %d allowed: flor status shows them",
			c.peer.ID, ErrFull, c.endpoint, c.usage.Streams.Load()-1, MaxStreams)
	}
	if err != nil {
		return nil, explain(err, c.peer.ID)
	}
	if _, err = st.Write(wire.Preamble{Type: carries, Target: c.peer.ID}.Append(nil)); err != nil {
		Reset(st, wire.Reset)
		return nil, explain(err, c.peer.ID)
	}
	c.usage.Opened.Add(1)
	return st, nil
}

// dial makes a connection. Only target's own certificate will do.
func (p *Pool) dial(ctx context.Context, r Route, svid *florete.SVID, endpoint string, at netip.AddrPort) (*conn, error) {
	if err := routed(ctx, at); err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", endpoint, err)
	}
	want := r.Target.ID()
	trust := p.identities().Trust
	var peer Peer
	config := tlsConfig(svid, func(cs tls.ConnectionState) error {
		var err error
		peer, err = verify(trust, cs, x509.ExtKeyUsageServerAuth)
		if err == nil && peer.ID != want {
			err = fmt.Errorf("certificate is for %s", peer.ID)
		}
		if err != nil {
			return &ImpostorError{Endpoint: endpoint, Want: want, Claims: peer.ID, Err: err}
		}
		return nil
	})
	config.ServerName = florete.SNI(r.Target)
	config.InsecureSkipVerify = true // host names; VerifyConnection checks chain and SPIFFE ID
	conf := quicConfig()
	conf.MaxIncomingStreams = -1
	q, err := p.quic.Dial(ctx, net.UDPAddrFromAddrPort(at), config, conf)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", want, endpoint, explain(err, want))
	}
	c := &conn{quic: q, svid: svid, peer: peer, endpoint: endpoint, at: at, until: earliest(svid, peer), mux: datagram.NewMux(q, &p.busy)}
	c.idle = time.AfterFunc(connIdle, c.closeIdle)
	return c, nil
}

// routed fails where the host has no route to an address, such as all of IPv6. It makes a
// socket which sends nothing.
func routed(ctx context.Context, at netip.AddrPort) error {
	c, err := new(net.Dialer).DialContext(ctx, "udp", at.String())
	if err != nil {
		return err
	}
	return c.Close()
}

// ImpostorError says that what answers at an endpoint could not prove to be the
// target.
type ImpostorError struct {
	Endpoint     string
	Want, Claims florete.ID
	Err          error
}

func (e *ImpostorError) Error() string {
	return fmt.Sprintf("endpoint %s is not %s: %v", e.Endpoint, e.Want, e.Err)
}

func (e *ImpostorError) Unwrap() error { return e.Err }
