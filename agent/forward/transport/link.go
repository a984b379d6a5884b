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
	"github.com/florete/florete/agent/forward/identity"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
)

// link is one connection to one endpoint of a target, made with one SVID.
type link struct {
	conn     *quic.Conn
	svid     *identity.SVID
	peer     Peer
	endpoint string         // as the route has it
	at       netip.AddrPort // where that led
	until    time.Time
	flows    *datagram.Conn
	usage    *usage.Conn // once it is installed

	mu      sync.Mutex
	streams int
	retired bool // takes no new streams; closed with its last one
	idle    *time.Timer
}

// usable tells whether new streams may go over l with svid.
func (l *link) usable(svid *identity.SVID) bool {
	return l.svid == svid && l.conn.Context().Err() == nil && time.Now().Before(l.until)
}

// acquire counts a stream in, unless the link is retired.
func (l *link) acquire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired {
		return false
	}
	l.streams++
	l.usage.Streams.Add(1)
	l.idle.Stop()
	return true
}

func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.usage.Streams.Add(-1)
	if l.streams--; l.streams == 0 {
		l.idle.Reset(l.patience())
	}
}

// retire takes no new streams; l is closed some time after its last one.
func (l *link) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = true
	if l.streams == 0 {
		l.idle.Reset(l.patience())
	}
}

// patience is how long l stays without streams. QUIC cannot tell whether the last
// bytes of a stream have arrived, and closing would take them back.
func (l *link) patience() time.Duration {
	if l.retired {
		return linger
	}
	return linkIdle
}

func (l *link) closeIdle() {
	l.mu.Lock()
	l.retired = l.retired || l.streams == 0
	unused := l.streams == 0
	l.mu.Unlock()
	if unused {
		closeWith(l.conn, wire.Done)
	}
}

// open begins a stream to the target. It does not wait for others to end.
func (l *link) open(flow wire.Flow) (*quic.Stream, error) {
	st, err := l.conn.OpenStream()
	var limit *quic.StreamLimitReachedError
	full := errors.As(err, &limit)
	l.usage.Full.Store(full)
	if full {
		return nil, fmt.Errorf("%s: %w on the connection to %s: %d are in use, %d allowed: flor status shows them",
			l.peer.ID, ErrFull, l.endpoint, l.usage.Streams.Load()-1, MaxStreams)
	}
	if err != nil {
		return nil, explain(err, l.peer.ID)
	}
	if _, err = st.Write(wire.Preamble{Flow: flow, Target: l.peer.ID}.Append(nil)); err != nil {
		Reset(st, wire.Reset)
		return nil, explain(err, l.peer.ID)
	}
	l.usage.Opened.Add(1)
	return st, nil
}

// dial makes a link. Only target's own certificate will do.
func (p *Pool) dial(ctx context.Context, r Route, svid *identity.SVID, endpoint string, at netip.AddrPort) (*link, error) {
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
	conn, err := p.quic.Dial(ctx, net.UDPAddrFromAddrPort(at), config, conf)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", want, endpoint, explain(err, want))
	}
	l := &link{conn: conn, svid: svid, peer: peer, endpoint: endpoint, at: at, until: earliest(svid, peer), flows: datagram.Over(conn, &p.busy)}
	l.idle = time.AfterFunc(linkIdle, l.closeIdle)
	return l, nil
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
