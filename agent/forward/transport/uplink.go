package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/tcpstream"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

const (
	// uplinkChecked is the time between two checks of an uplink.
	uplinkChecked = 250 * time.Millisecond
	// uplinkRetry is the time after which a failed uplink is tried again. The time doubles with
	// each failure, up to maxUplinkRetry.
	uplinkRetry    = 500 * time.Millisecond
	maxUplinkRetry = 15 * time.Second
	// uplinkSpares is the number of TCP connections to a relay that wait for a caller.
	uplinkSpares = 2
	// uplinkHandshakes is the maximum number of handshakes under way with callers who come through
	// an uplink.
	uplinkHandshakes = 256
)

// UplinkTo describes a connection that this host must keep open to a relay, so that other hosts can
// reach it: the relay, and how to connect to it.
type UplinkTo struct {
	Relay     spiffe.Dialable
	Addresses document.Addresses
	Node      spiffe.ID // of this host
	Transport document.Transport
	// Dial connects from the socket of a listener, so that a NAT maps the uplink and the listener
	// to one address. If no listener's socket reaches the relay, Dial connects from another socket
	// and returns no listener.
	Dial func(context.Context, *net.UDPAddr, *tls.Config, *quic.Config) (*quic.Conn, *Listener, error)
	// Meets reports whether callers may learn the address of this host to connect directly.
	Meets   bool
	Outside *Outside // addresses of this host as its relays see them; shared by all uplinks
}

// Uplink keeps a connection from this host to a relay, through which callers on other hosts reach
// this host. It serves as a listener for these callers. Over TCP, an uplink consists of several
// connections, each of which carries one stream at a time.
type Uplink struct {
	UplinkTo
	server   *Server
	accepted chan *Incoming
	ctx      context.Context // ends when the uplink ends
	end      context.CancelFunc
	keeping  context.Context // ends when the uplink makes no more connections
	stop     context.CancelFunc
	tasks    sync.WaitGroup
	shaking  chan struct{}
	again    chan struct{} // wakes up keep

	mu     sync.Mutex
	state  UplinkState
	quic   bool // the last attempt over QUIC succeeded
	conns  map[closer]Peer
	spares int
	tcp    context.CancelFunc // closes the waiting TCP connections; nil if none are kept
	// tcpSVID is the SVID with which the waiting TCP connections are made.
	tcpSVID *trust.SVID
}

// UplinkState is the state of an uplink as flor status shows it.
type UplinkState struct {
	Relay     spiffe.ID
	Transport document.Transport // empty while there is no connection
	Since     time.Time          // time of the last change of Transport
	Error     string             // last failure; empty while there is a connection
}

// Uplink starts to keep a connection open to a relay, and returns at once. It connects again
// whenever the connection fails, until Stop or Close is called on the result.
func (s *Server) Uplink(to UplinkTo) *Uplink {
	u := &Uplink{
		UplinkTo: to, server: s, accepted: make(chan *Incoming), shaking: make(chan struct{}, uplinkHandshakes),
		again: make(chan struct{}, 1), state: UplinkState{Relay: to.Relay.ID(), Since: time.Now()}, conns: map[closer]Peer{},
	}
	u.ctx, u.end = context.WithCancel(context.Background())
	u.keeping, u.stop = context.WithCancel(u.ctx)
	u.tasks.Go(u.keep)
	return u
}

// State returns the current state of the uplink.
func (u *Uplink) State() UplinkState {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state
}

// Accept waits for the next caller that connects through the relay. It returns net.ErrClosed after
// Close was called.
func (u *Uplink) Accept() (*Incoming, error) {
	select {
	case in := <-u.accepted:
		return in, nil
	case <-u.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Offer returns no files. The next process of the forwarder, which replaces this one, makes its own
// connection to the relay.
func (u *Uplink) Offer() ([]*os.File, error) { return nil, nil }

// Drain stops making connections to the relay, so that the relay uses those of the next process of
// the forwarder. Existing connections continue.
func (u *Uplink) Drain() { u.stop() }

// Stop stops making connections to the relay, like Drain.
func (u *Uplink) Stop() { u.stop() }

// Close closes all connections of the uplink and waits for its goroutines.
func (u *Uplink) Close() {
	u.end()
	u.mu.Lock()
	for c := range u.conns {
		closeWith(c, wire.Done)
	}
	u.mu.Unlock()
	u.tasks.Wait()
}

// Recheck closes the connections to the relay if the current trust roots no longer accept the
// relay.
func (u *Uplink) Recheck() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c, peer := range u.conns {
		if !peer.TrustedBy(u.server.Identities().Trust) {
			closeWith(c, wire.Untrusted)
		}
	}
}

// keep connects to the relay, and connects again whenever the uplink fails, until the uplink is
// stopped.
func (u *Uplink) keep() {
	u.tasks.Go(func() { _ = watchRoutes(u.keeping, u.wake) })
	defer u.endTCP()
	for failures := 0; u.keeping.Err() == nil; {
		if u.Transport != document.OverTCP {
			fallback := time.AfterFunc(patience, u.overTCP)
			dialled, svid, err := u.dialQUIC()
			fallback.Stop()
			if err == nil {
				failures = 0
				u.endTCP()
				u.record(func() { u.quic = true }, nil)
				u.hold(dialled, svid)
				continue
			}
			u.record(func() { u.quic = false }, err)
		}
		u.overTCP()
		wait := min(uplinkRetry<<min(failures, 10), maxUplinkRetry)
		failures++
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-u.again:
		case <-u.keeping.Done():
		}
	}
}

// wake makes keep check the current connection at once, or try again at once if there is none.
func (u *Uplink) wake() {
	select {
	case u.again <- struct{}{}:
	default:
	}
}

// record calls the function change, which changes the connections of the uplink, and updates the
// state of the uplink. The state shows an error only while the uplink has no connection.
func (u *Uplink) record(change func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
	over := document.AnyTransport
	switch {
	case u.quic:
		over = document.OverQUIC
	case u.spares > 0:
		over = document.OverTCP
	}
	if u.state.Transport != over {
		u.state.Transport, u.state.Since = over, time.Now()
	}
	if over != document.AnyTransport {
		u.state.Error = ""
	} else if err != nil {
		u.state.Error = err.Error()
	}
}

// svid returns the SVID of this host's node and the trust roots. It returns an error if the SVID is
// missing or not valid now.
func (u *Uplink) svid() (*trust.SVID, *trust.Roots, error) {
	set := u.server.Identities()
	svid := set.SVID(u.Node)
	if svid == nil {
		return nil, nil, fmt.Errorf("%s: %w", u.Node, ErrNoIdentity)
	}
	if !svid.Valid(time.Now()) {
		return nil, nil, fmt.Errorf("%s: %w", u.Node, ErrExpired)
	}
	return svid, set.Trust, nil
}

// race connects to the first of the relay's addresses that answers.
func race[C closer](ctx context.Context, u *Uplink, dial func(context.Context, netip.AddrPort, *trust.SVID, *trust.Roots) (C, error)) (c C, svid *trust.SVID, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	svid, roots, err := u.svid()
	if err != nil {
		return c, nil, err
	}
	drop := func(c C) { closeWith(c, wire.Done) }
	c, err = conns.Race(ctx, u.Addresses, func(ctx context.Context, address string) (C, error) {
		found, err := conns.Resolve(ctx, address)
		if err != nil {
			var none C
			return none, fmt.Errorf("relay %q: %w", address, err)
		}
		return conns.Race(ctx, found, func(ctx context.Context, at netip.AddrPort) (C, error) { return dial(ctx, at, svid, roots) }, drop)
	}, drop)
	return c, svid, err
}

// add adds a connection to the uplink until the connection ends.
func (u *Uplink) add(c interface {
	closer
	Context() context.Context
}, peer Peer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conns[c] = peer
	u.tasks.Add(1)
	context.AfterFunc(c.Context(), func() {
		defer u.tasks.Done()
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.conns, c)
		u.wake()
	})
	if u.ctx.Err() != nil {
		closeWith(c, wire.Done)
	}
}

// serve performs the handshake with a caller who came through the relay, and passes the connection
// to Accept.
func (u *Uplink) serve(st wire.Stream, local, remote net.Addr, released func()) {
	select {
	case u.shaking <- struct{}{}:
	default:
		Reset(st, wire.Busy)
		released()
		return
	}
	u.tasks.Go(func() {
		socket := tcpstream.NewRelayed(st, local, remote, released)
		done := sync.OnceFunc(func() { <-u.shaking })
		in, err := u.server.shake(u.ctx, socket, Relayed, func() error { return nil }, done, &u.tasks)
		done()
		if err != nil {
			socket.Close()
			return
		}
		select {
		case u.accepted <- in:
		case <-u.ctx.Done():
			in.Close(wire.Stopping)
		}
	})
}
