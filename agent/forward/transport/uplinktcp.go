package transport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/florete/florete/agent/forward/tcpstream"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
)

// overTCP begins to keep TCP connections to the relay, on which the uplink waits for callers. It
// does nothing if such connections exist and were made with the current SVID.
func (u *Uplink) overTCP() {
	svid, _, err := u.svid()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.Transport == document.OverQUIC || u.keeping.Err() != nil || u.tcp != nil && (err != nil || svid == u.tcpSVID) {
		return
	}
	if u.tcp != nil {
		u.tcp()
	}
	ctx, cancel := context.WithCancel(u.keeping)
	u.tcp, u.tcpSVID = cancel, svid
	for range uplinkSpares {
		u.tasks.Go(func() { u.keepTCP(ctx) })
	}
}

// endTCP closes the TCP connections that wait for a caller. A connection with a caller ends with
// its stream.
func (u *Uplink) endTCP() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tcp != nil {
		u.tcp()
		u.tcp = nil
	}
}

// keepTCP keeps one TCP connection to the relay that waits for a caller. When a caller has taken
// it, keepTCP makes another one.
func (u *Uplink) keepTCP(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		c, err := u.dialTCP(ctx)
		if err == nil {
			failures = 0
			u.record(func() { u.spares++ }, nil)
			err = u.await(ctx, c)
			u.record(func() { u.spares-- }, nil)
			if err == nil {
				continue // a caller uses it
			}
		}
		if ctx.Err() != nil {
			return // QUIC took over
		}
		u.record(func() {}, err)
		wait := min(uplinkRetry<<min(failures, 10), maxUplinkRetry)
		failures++
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
		}
	}
}

func (u *Uplink) dialTCP(ctx context.Context) (*tcpstream.Conn, error) {
	c, _, err := race(ctx, u, func(ctx context.Context, at netip.AddrPort, svid *trust.SVID, roots *trust.Roots) (*tcpstream.Conn, error) {
		var peer Peer
		t, _, err := handshakeTCP(ctx, func(ctx context.Context) (*tcpstream.Socket, *conn, error) {
			s, err := socketTo(ctx, at)
			return s, nil, err
		}, tlsTo(u.Relay, wire.ALPNUplinkOverTCP, svid, roots, at.String(), &peer))
		if err != nil {
			return nil, fmt.Errorf("relay %s over TCP: %w", at, explain(err, u.Relay.ID()))
		}
		c := tcpstream.New(t, nil, &u.tasks)
		u.add(c, peer)
		return c, nil
	})
	return c, err
}

// await waits for the relay to open a stream on a TCP connection, and serves the stream. The
// connection ends after this stream. The number of connections therefore never exceeds the number
// of callers plus the number of spare connections.
func (u *Uplink) await(ctx context.Context, c *tcpstream.Conn) error {
	stop := context.AfterFunc(ctx, c.Leave)
	defer stop()
	st, err := c.AcceptStream(c.Context())
	if err != nil {
		return err
	}
	u.serve(st, c.LocalAddr(), c.RemoteAddr(), func() {})
	c.Leave()
	u.tasks.Go(func() { _, _ = c.AcceptStream(c.Context()) }) // closes the connection after its stream
	return nil
}
