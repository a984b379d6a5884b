package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

const (
	// punchRetry is the minimum time between two attempts to connect directly to the same host. It
	// doubles with each failure, up to maxPunchRetry. After a change of the network, the next
	// attempt may begin at once.
	punchRetry    = time.Minute
	maxPunchRetry = 10 * time.Minute
	// meetTimeout is the time within which a relay must answer a request for a host's address.
	meetTimeout = 5 * time.Second
)

// Punched is the name that users see for the transport of direct connections over QUIC that a relay
// made possible, between hosts behind NATs. Documents do not contain it.
const Punched document.Transport = "punched"

// path returns the transport of the connection for users, which is Punched for a direct connection
// that a relay made possible.
func (c *conn) path() document.Transport {
	if c.endpoint.punched != nil {
		return Punched
	}
	return c.transport
}

// punched is a direct path to a host. A relay has told this host the address. The address is kept
// only while a connection over the path exists.
type punched struct {
	via      *Via           // path through the relay that introduced the host
	at       netip.AddrPort // outside address of the host; zero while there is no connection
	socket   int            // socket of the pool whose packets the host's NAT lets in
	conns    int            // number of connections to at
	busy     bool           // an attempt is in progress
	failures int            // consecutive failed attempts
	reason   string         // reason of the last failure
	next     time.Time      // earliest time of the next attempt
}

// punchKey identifies the host to which a route of a relay leads.
type punchKey struct {
	relay spiffe.ID
	label string
}

func (v *Via) key() punchKey { return punchKey{v.Relay.Target.ID(), v.Label} }

// name returns the key of the path among the endpoints of a target.
func (x *punched) name() string { return "direct to " + x.at.String() }

// standing returns the endpoints of the direct paths to a route's target that have a connection.
// Relays have made these paths possible. The argument known contains the endpoints of the target by
// name, which standing reuses. The caller holds the lock.
func (p *Pool) standing(r Route, known map[string]*endpoint) (all []*endpoint) {
	if r.Transport == document.OverTCP {
		return nil
	}
	for _, via := range r.Via {
		x := p.punched[via.key()]
		if x == nil || x.conns == 0 {
			continue
		}
		e := known[x.name()]
		if e == nil || e.punched != x {
			e = &endpoint{punched: x, addresses: document.Addresses{x.at.String()}}
		}
		all = append(all, e)
	}
	return all
}

// seekDirect begins an attempt to replace a connection through a relay by a direct connection to
// the same host. The argument c is the relayed connection. seekDirect does nothing if a direct path
// exists, or if an attempt is in progress or was made a short time ago.
func (p *Pool) seekDirect(r Route, c *conn) {
	via := c.endpoint.via
	if via == nil || !via.Meet || r.Transport == document.OverTCP {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, v := range r.Via {
		if x := p.punched[v.key()]; x != nil && (x.busy || x.conns > 0) {
			return
		}
	}
	x := p.punched[via.key()]
	if x == nil {
		x = &punched{}
		p.punched[via.key()] = x
	}
	if now.Before(x.next) || p.ctx.Err() != nil || p.outside.NAT() == OtherNAT || !p.punches.Allow() {
		return
	}
	x.busy, x.via = true, via
	x.next = now.Add(min(punchRetry<<min(x.failures, 10), maxPunchRetry))
	p.busy.Go(func() {
		err := p.punch(r, via, x)
		p.mu.Lock()
		defer p.mu.Unlock()
		x.busy = false
		if err != nil {
			x.failures++
			x.reason = err.Error()
		} else {
			x.failures, x.reason = 0, ""
		}
	})
}

// punch asks a relay for the address of a host, and connects to the host directly. The host proves
// its identity as on any other path, so a relay that names a wrong address cannot pose as the host.
func (p *Pool) punch(r Route, via *Via, x *punched) error {
	at, socket, err := p.meet(via)
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Code == wire.NoRoute {
		return fmt.Errorf("relay %s gives no address: the host is hidden, behind a symmetric NAT, or without QUIC", via.Relays[0])
	}
	if err != nil {
		return fmt.Errorf("relay %s: %w", via.Relays[0], err)
	}
	svid := p.identities().SVID(r.Caller)
	if svid == nil {
		return fmt.Errorf("%s: %w", r.Caller, ErrNoIdentity)
	}
	e := &endpoint{punched: x, addresses: document.Addresses{at.String()}}
	ctx, cancel := context.WithTimeout(p.ctx, handshakeTimeout)
	defer cancel()
	c, err := p.dialQUIC(ctx, destination{route: r, svid: svid, endpoint: e, address: at.String(), at: at, socket: socket})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	x.at, x.socket = at, socket
	if err := p.install(r, c); err != nil {
		return err
	}
	if t := p.targets[targetKey{r.Caller, r.Target}]; t != nil {
		t.endpoints[x.name()] = e
	}
	return nil
}

// meet asks a relay to introduce this host to another host: the relay tells each host the address
// of the other. meet returns the other host's address. It also returns the index of the pool's
// socket from which this host must connect, because the NAT of the other host lets in packets from
// that socket only.
func (p *Pool) meet(via *Via) (at netip.AddrPort, socket int, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, meetTimeout)
	defer cancel()
	st, err := p.open(ctx, via.Relay, wire.AppendMeet(nil, via.Label))
	if err != nil {
		return at, 0, err
	}
	defer st.Release()
	defer st.Close()
	l, ok := st.conn.link.(*quicLink)
	if !ok {
		Reset(st.Stream, wire.Reset)
		return at, 0, errors.New("it is connected over TCP, which shows no address for UDP")
	}
	if err := st.Answer(ctx); err != nil {
		return at, 0, err
	}
	_ = st.SetReadDeadline(time.Now().Add(meetTimeout))
	m, err := wire.ReadMeeting(st)
	if err != nil {
		return at, 0, err
	}
	socket = int(l.paths.socket.Load())
	own := netip.AddrPortFrom(st.conn.source, p.quic[socket].Conn.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	if m.Own.IsValid() && socket == 0 {
		p.outside.see(via.Relay.Target.ID(), own, m.Own, l.Conn)
	}
	if !mayMeet(m.Peer, st.conn.at) {
		return at, 0, fmt.Errorf("the address %s is none to connect to", m.Peer)
	}
	if p.outside.NAT() == OtherNAT {
		return at, 0, errors.New("a symmetric NAT is in front of this host")
	}
	return m.Peer, socket, nil
}

// dialPunched makes a further connection over a direct path that already has one.
func (p *Pool) dialPunched(ctx context.Context, to destination) (*conn, error) {
	p.mu.Lock()
	x := to.endpoint.punched
	to.at, to.socket = x.at, x.socket
	p.mu.Unlock()
	to.address = to.at.String()
	if !to.at.IsValid() {
		return nil, fmt.Errorf("%s: the direct path has ended", to.route.Target.ID())
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	return p.dialQUIC(ctx, to)
}

// leave records that a connection over a direct path has ended. After the last connection, it
// forgets the address. The caller holds the lock.
func (x *punched) leave() {
	if x.conns--; x.conns == 0 {
		x.at = netip.AddrPort{}
	}
}

// PathInUse says how new streams from a caller reach a target at the moment, for example directly
// or through relays. flor status shows it.
type PathInUse struct {
	Caller, Target spiffe.ID
	Path           string    // "direct", "direct (punched)", or "by gate, gate2"
	Since          time.Time // time when the current connection was made
	Why            string    // reason why the path is not direct; empty for a direct path
}

// PathsInUse returns the path that new streams take to each target that has a connection and can
// also be reached through relays. The paths are sorted by target, and then by caller.
func (p *Pool) PathsInUse() (all []PathInUse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for key, t := range p.targets {
		var best *endpoint
		relays, failed := false, ""
		for _, e := range t.endpoints {
			relays = relays || e.via != nil
			if e.via == nil && e.failures > 0 {
				failed = fmt.Sprintf("no answer at %s", strings.Join(e.addresses, ", "))
			}
			if e.current != nil && (best == nil || e.precedes(best, t.relays.chosen, now)) {
				best = e
			}
		}
		if best == nil || !relays {
			continue
		}
		used := PathInUse{Caller: key.caller, Target: key.target.ID(), Path: "direct", Since: best.current.made}
		switch {
		case best.punched != nil:
			used.Path = "direct (punched)"
		case best.via != nil:
			used.Path, used.Why = best.via.String(), p.whyRelayed(best.via, now)
			if failed != "" {
				used.Why = failed + "; " + used.Why
			}
		}
		all = append(all, used)
	}
	slices.SortFunc(all, func(a, b PathInUse) int {
		return cmp.Or(strings.Compare(a.Target.String(), b.Target.String()), strings.Compare(a.Caller.String(), b.Caller.String()))
	})
	return all
}

// precedes reports whether new streams prefer this endpoint to another one, if both have
// connections. The argument relay is the chosen path through relays.
func (e *endpoint) precedes(other, relay *endpoint, now time.Time) bool {
	rank := func(x *endpoint) int {
		switch {
		case x.avoided(now):
			return 3
		case x.via == nil:
			return 0
		case x == relay:
			return 1
		}
		return 2
	}
	return rank(e) < rank(other)
}

// whyRelayed returns the reason why new streams use a path through relays, given by via, instead of
// a direct connection. The caller holds the lock.
func (p *Pool) whyRelayed(via *Via, now time.Time) string {
	x := p.punched[via.key()]
	switch {
	case len(via.Relays) > 1:
		return "two relays on the path, whose ends cannot meet"
	case !via.Meet:
		return "this host is hidden, or is the relay itself"
	case p.outside.NAT() == OtherNAT:
		return "a symmetric NAT is in front of this host"
	case x == nil:
		return "not tried yet"
	case x.busy:
		return "a direct connection is being made"
	case x.reason == "":
		return "the direct connection has ended"
	case x.next.Before(now):
		return x.reason
	}
	return fmt.Sprintf("%s; tried again after %s", x.reason, x.next.Sub(now).Round(time.Second))
}

// NAT returns the kind of NAT in front of the pool's first UDP socket, as relays observe it.
func (p *Pool) NAT() NAT { return p.outside.NAT() }
