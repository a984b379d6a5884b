package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/tcpstream"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

const (
	// tcpIdle is the time for which a TCP connection waits for its next stream.
	tcpIdle = time.Minute
	// relayedIdle replaces tcpIdle for a connection through a relay. It is shorter than the time
	// after which a relay gives up a silent uplink. A later stream therefore makes a new
	// connection, for which the relay chooses a working uplink.
	relayedIdle = 2 * time.Second
)

// refusedPause is the delay between two attempts to connect to a forwarder that is not running.
const refusedPause = 100 * time.Millisecond

// tcpLink is the set of connections of one caller to one forwarder of a target, over TCP or through
// a relay. Each connection carries one stream at a time and is then reused for the next stream.
type tcpLink struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	make   func(context.Context) (*tcpConn, error)
	rest   time.Duration // time for which a connection waits for its next stream

	mu    sync.Mutex
	idle  []*tcpConn // most recently used last
	conns map[*tcpConn]struct{}
}

type tcpConn struct {
	*tcpstream.Conn
	peer  Peer
	outer *conn       // connection to the relay; nil over TCP
	timer *time.Timer // closes the connection when it has been idle for the link's rest
}

// dialTCP connects to an endpoint of a target over TCP.
func (p *Pool) dialTCP(ctx context.Context, to destination) (*conn, error) {
	return p.dialLink(ctx, to, document.OverTCP, func(ctx context.Context) (*tcpstream.Socket, *conn, error) {
		s, err := socketTo(ctx, to.at)
		return s, nil, err
	})
}

// dialLink returns a connection whose link has one connection already, which shows that further
// ones can be made. The link uses dial to make each connection below TLS.
func (p *Pool) dialLink(ctx context.Context, to destination, over document.Transport, dial dialSocket) (*conn, error) {
	l := &tcpLink{conns: map[*tcpConn]struct{}{}, rest: tcpIdle}
	if over == Relayed {
		l.rest = relayedIdle
	}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.make = func(ctx context.Context) (*tcpConn, error) { return p.shakeTCP(ctx, to, dial, l) }
	first, err := l.make(ctx)
	if err != nil {
		l.cancel(err)
		return nil, err
	}
	l.wait(first)
	if at, ok := first.LocalAddr().(*net.TCPAddr); ok {
		to.source = at.AddrPort().Addr().Unmap()
	}
	c := to.conn(over, l, first.peer, datagram.NewMux(nil, nil))
	c.outer = first.outer
	return c, nil
}

// dialSocket makes the connection below TLS. It also returns the connection to the relay if the
// path leads through one, and nil otherwise.
type dialSocket func(context.Context) (*tcpstream.Socket, *conn, error)

// shakeTCP makes one connection of a link and performs its TLS handshake. It tries again for a
// while if the forwarder is not running.
func (p *Pool) shakeTCP(ctx context.Context, to destination, dial dialSocket, l *tcpLink) (*tcpConn, error) {
	if !p.begin() {
		return nil, p.ctx.Err()
	}
	defer p.busy.Done()
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	c := &tcpConn{}
	config := p.tlsTo(to.route, wire.ALPNOverTCP, to.svid, to.address, &c.peer)
	config.ServerName = to.serverName()
	began := time.Now()
	t, outer, err := handshakeTCP(ctx, dial, config)
	for stopped(err) && ctx.Err() == nil {
		select {
		case <-time.After(refusedPause):
			t, outer, err = handshakeTCP(ctx, dial, config)
		case <-ctx.Done():
		}
	}
	if err != nil {
		want := to.route.Target.ID()
		if to.endpoint.via != nil {
			return nil, fmt.Errorf("%s %s: %w", want, to.address, explain(err, want))
		}
		return nil, fmt.Errorf("%s at %s over TCP: %w", want, to.address, explain(err, want))
	}
	c.outer = outer
	if to.endpoint.via != nil {
		p.mu.Lock()
		to.endpoint.shook(time.Since(began), time.Now())
		p.mu.Unlock()
	}
	c.timer = time.AfterFunc(l.rest, func() { l.expire(c) })
	c.timer.Stop()
	c.Conn = tcpstream.New(t, func() { l.wait(c) }, &p.busy)
	return c, l.add(c)
}

// stopped reports whether a handshake may have failed because the forwarder is being restarted. The
// caller then waits and tries again. Over QUIC, this happens without such an error, because nobody
// answers during a restart. If the handshake went through a relay, the relay resets the stream
// while it still has the uplink of the forwarder's previous process.
func stopped(err error) bool {
	var refused *RefusedError
	if errors.As(explain(err, spiffe.ID{}), &refused) {
		return refused.Code == wire.Stopping || refused.Code == wire.Reset // a relay sends Reset
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func handshakeTCP(ctx context.Context, dial dialSocket, config *tls.Config) (*tls.Conn, *conn, error) {
	socket, outer, err := dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	t := tls.Client(socket, config)
	if err = t.HandshakeContext(ctx); err != nil {
		socket.Close()
		return nil, nil, err
	}
	return t, outer, nil
}

// socketTo connects to an address over TCP.
func socketTo(ctx context.Context, at netip.AddrPort) (*tcpstream.Socket, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return nil, err
	}
	socket, err := tcpstream.NewSocket(c.(*net.TCPConn))
	if err != nil {
		c.Close()
	}
	return socket, err
}

// add adds a connection to the link until the connection ends. If the link has ended, add closes
// the connection and returns an error.
func (l *tcpLink) add(c *tcpConn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		closeWith(c, wire.Done)
		return context.Cause(l.ctx)
	}
	l.conns[c] = struct{}{}
	context.AfterFunc(c.Context(), func() { l.remove(c) })
	return nil
}

func (l *tcpLink) remove(c *tcpConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.timer.Stop()
	delete(l.conns, c)
	l.idle = slices.DeleteFunc(l.idle, func(o *tcpConn) bool { return o == c })
}

// wait keeps an idle connection of the link for the next stream.
func (l *tcpLink) wait(c *tcpConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.conns[c]; open {
		c.Rest()
		l.idle = append(l.idle, c)
		c.timer.Reset(l.rest)
	}
}

// expire closes a connection that has been idle for too long.
func (l *tcpLink) expire(c *tcpConn) {
	l.mu.Lock()
	i := slices.Index(l.idle, c)
	if i >= 0 {
		l.idle = slices.Delete(l.idle, i, i+1)
	}
	l.mu.Unlock()
	if i >= 0 {
		closeWith(c, wire.Done)
	}
}

// take removes an idle connection from the link and returns it. It returns nil if there is none.
func (l *tcpLink) take() *tcpConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.idle) > 0 {
		last := len(l.idle) - 1
		c := l.idle[last]
		l.idle = l.idle[:last]
		c.timer.Stop()
		if c.Usable() {
			return c
		}
		closeWith(c, wire.Done)
	}
	return nil
}

// OpenStream opens a stream on an idle connection of the link, or on a new connection if none is
// idle.
func (l *tcpLink) OpenStream(ctx context.Context) (wire.Stream, error) {
	for {
		c := l.take()
		kept := c != nil
		if !kept {
			var err error
			if c, err = l.make(ctx); err != nil {
				return nil, err
			}
		}
		if st, err := c.OpenStream(); err == nil {
			return st, nil
		} else if !kept {
			return nil, err
		}
	}
}

// CloseWithError closes the link and all its connections.
func (l *tcpLink) CloseWithError(code quic.ApplicationErrorCode, reason string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel(&quic.ApplicationError{ErrorCode: code, ErrorMessage: reason})
	for c := range l.conns {
		_ = c.CloseWithError(code, reason)
	}
	return nil
}

func (l *tcpLink) Context() context.Context { return l.ctx }

func (l *tcpLink) issuers() (all []*x509.Certificate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		all = append(all, c.peer.issuer())
	}
	return all
}

func (l *tcpLink) trusted(t *trust.Roots) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if !c.peer.TrustedBy(t) {
			return false
		}
	}
	return true
}

// stats returns the sum of the counters of all open connections.
func (l *tcpLink) stats() (s usage.Stats) {
	l.mu.Lock()
	all := make([]*tcpConn, 0, len(l.conns))
	for c := range l.conns {
		all = append(all, c)
	}
	l.mu.Unlock()
	for _, c := range all {
		one := c.Stats()
		s.Received += one.Received
		s.Packets += one.Packets
		s.Sent += one.Sent
		s.Unread += one.Unread
	}
	return s
}
