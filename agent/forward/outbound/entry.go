package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
)

const (
	// perEntry is the maximum number of connections at one entry, so that strangers leave files for
	// local processes.
	perEntry = 1 << 13
	// maxSources is the number of addresses for which an entry remembers rates.
	maxSources = 1 << 14
)

// stranger is a caller without an identity that connects at an entry. The zero stranger stands for
// a local process.
type stranger struct {
	at   listenerKey // listener of the entry
	from netip.Addr
	name string          // server name in its TLS handshake; empty if the entries at the listener need none
	peer *transport.Peer // as its client certificate proves; nil if the entries at the listener need none
}

// entry is an entry of the manifest, with the service that it leads to.
type entry struct {
	document.Entry
	service serviceKey
}

// admits reports whether callers may connect from an address.
func (e entry) admits(from netip.Addr) bool {
	return len(e.From) == 0 || slices.ContainsFunc(e.From, func(p netip.Prefix) bool { return p.Contains(from) })
}

// enter returns the entry that applies to a stranger. If several entries match, the first one
// applies.
func (r *rules) enter(k stranger) (entry, *refusal) {
	admitted, proving := false, r.asksCertificate(k.at, k.from)
	for _, e := range r.entries[k.at] {
		if !e.admits(k.from) || proving && !e.isFor(k.peer) {
			continue
		}
		if len(e.ServerNames) == 0 || slices.Contains(e.ServerNames, k.name) {
			return e, nil
		}
		admitted = true
	}
	if admitted {
		return entry{}, &refusal{becauseUnknownName, fmt.Sprintf("no service has the TLS server name %q at this port", k.name)}
	}
	return entry{}, &refusal{becauseNotAdmitted, "the entry is for other networks"}
}

// asksName reports whether the TLS server name decides which entry applies to a caller.
func (r *rules) asksName(at listenerKey, from netip.Addr) bool {
	return slices.ContainsFunc(r.entries[at], func(e entry) bool { return len(e.ServerNames) > 0 && e.admits(from) })
}

// listenerAddress returns the address of an entry. All addresses of the host are [::].
func listenerAddress(listen string) (netip.AddrPort, error) {
	if listen[0] == ':' {
		listen = "[::]" + listen
	}
	return netip.ParseAddrPort(listen)
}

// sharedPorts returns the ports at which an entry listens on all addresses of the host, beside the
// local listeners of services on the same port.
func (r *rules) sharedPorts() map[uint16]bool {
	shared := map[uint16]bool{}
	for at := range r.entries {
		if at.addr.Addr().IsUnspecified() {
			shared[at.addr.Port()] = true
		}
	}
	return shared
}

// sourcesOf returns the limits for the callers of an entry. Limits of an entry that remains are
// kept, with what callers have used of them.
func (s *Server) sourcesOf(e entry) *acl.Sources {
	fresh := acl.NewSources(maxSources, e.Limits)
	had, _ := s.sources.LoadOrStore(sourcesKey{e.Listen, e.service}, fresh)
	if had != fresh {
		had.(*acl.Sources).Apply(e.Limits)
	}
	return had.(*acl.Sources)
}

type sourcesKey struct {
	listen  string
	service serviceKey
}

// enter carries a connection of a stranger to the service of the entry that applies to it.
func (s *Server) enter(ctx context.Context, local *net.TCPConn, at listenerKey, c connection, ends *handover.Ends) {
	c.origin = wire.Origin{From: local.RemoteAddr().(*net.TCPAddr).AddrPort(), To: local.LocalAddr().(*net.TCPAddr).AddrPort()}.Canonical()
	release, ok := s.entering.Acquire(at)
	if !ok {
		s.refuse(c, &refusal{becauseTooMany, fmt.Sprintf("the entry has %d connections", s.entering.Max())})
		reset(local)
		return
	}
	ends.Add(release)
	if c.rules.asksCertificate(at, c.origin.From.Addr()) {
		s.enterProven(ctx, local, at, c, ends)
		return
	}
	e := newEarly(local)
	defer e.release()
	name, isTLS := "", false
	if c.rules.asksName(at, c.origin.From.Addr()) {
		stop := context.AfterFunc(ctx, func() { local.SetReadDeadline(time.Unix(1, 0)) })
		name, isTLS = e.serverName()
		stop()
	}
	if denied := s.admitStranger(&c, stranger{at: at, name: name}); denied != nil {
		s.refuse(c, denied)
		if isTLS {
			_, _ = local.Write(unrecognizedName)
			local.Close()
			return
		}
		reset(local)
		return
	}
	ends.Add(c.leave)
	s.direct(ctx, local, c, e, ends)
}

// carryStranger sends a datagram of a stranger to the service of the entry that applies to it.
func (l *udpListener) carryStranger(r *rules, from netip.AddrPort, payload, oob []byte) {
	c := connection{rules: r, origin: wire.Origin{From: from}.Canonical()}
	e, denied := r.enter(stranger{at: l.entry, from: c.origin.From.Addr()})
	if denied != nil {
		c.as = r.node
		l.server.refuse(c, denied)
		return
	}
	l.send(sessionKey{from: from, to: e.service}, destination{payload: payload}, answerFrom(oob), func() (connection, bool) {
		denied := l.server.admitStranger(&c, stranger{at: l.entry})
		if denied != nil {
			l.server.refuse(c, denied)
		}
		return c, denied == nil
	})
}

// admitStranger finds the entry that applies to a stranger's connection and sets the service of the
// connection. The connection counts towards the entry's limits until its method leave is called. If
// no entry applies, or the stranger exceeds a limit, admitStranger returns a refusal.
func (s *Server) admitStranger(c *connection, who stranger) *refusal {
	who.from = c.origin.From.Addr()
	c.stranger = who
	c.as = c.rules.node
	e, denied := c.rules.enter(c.stranger)
	if denied != nil {
		return denied
	}
	c.serviceKey, c.announce = e.service, e.Announce
	if e.Limits != (document.Limits{}) {
		share, release, err := s.sourcesOf(e).Open(conns.Prefix(c.origin.From.String()))
		if err != nil {
			return &refusal{wire.OverLimit.String(), err.Error()}
		}
		c.limits, c.release = share, release
	}
	if s.Access.Wants(e.AccessLog) {
		c.log = s.accessTo(e, *c)
	}
	return nil
}

// ended is called when a connection has ended, with its counters and the reason.
type ended func(counted telemetry.Conn, over document.Transport, end string)

// accessTo returns a function that logs a connection of a stranger.
func (s *Server) accessTo(e entry, c connection) ended {
	begun := time.Now()
	return func(counted telemetry.Conn, over document.Transport, end string) {
		s.Access.Write(telemetry.Access{
			Caller: c.as, Outside: e.Outside, Service: c.target.ID(), Port: c.port, From: c.origin.From.String(), Upstream: e.Listen,
			Protocol: c.protocol, Transport: over, Begun: begun, Duration: time.Since(begun),
			Sent: counted.Sent.Load(), Received: counted.Received.Load(), End: end,
		})
	}
}

// leave ends the count of a stranger's connection. It does nothing for a local process.
func (c connection) leave() {
	if c.release != nil {
		c.release()
	}
}

// logged writes a stranger's connection to the access log, if the entry asks for it.
func (c connection) logged(counted telemetry.Conn, over document.Transport, end string) {
	if c.log != nil {
		c.log(counted, over, end)
	}
}
