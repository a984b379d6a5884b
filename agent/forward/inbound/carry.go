package inbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/florete/florete/agent/forward/announce"
	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/splice"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/upstream"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/journal"
)

const (
	preambleTimeout = 10 * time.Second
	upstreamTimeout = 10 * time.Second
)

// carry serves one stream of a caller. It calls the function done when the connection to the
// service is made or has failed. If the connection is made, a new goroutine with a small stack
// carries the stream to its end. A UDP session has no end for which the server could wait, so it
// ends when the context r.accepting ends.
func (s *Server) carry(ctx context.Context, r *running, in *transport.Incoming, st wire.Stream, done func(opened bool), ends *handover.Ends) {
	defer ends.Close()
	begun := time.Now()
	if in.Target == s.Relay.ID() {
		s.carryOn(ctx, in, st, done, ends)
		return
	}
	service, origin, code, err := s.service(in, st)
	if err == nil && service.Port != "" {
		code, err = s.admitPort(in, st, service.Port, ends)
	}
	var conn net.Conn
	var forget func()
	if err == nil {
		conn, forget, err = s.dial(st.Context(), in, service, origin)
		code = failure(err)
	}
	done(err == nil)
	s.trace(in, st, begun, code)
	if err != nil {
		s.refuse(in, service.Port, code, err.Error())
		transport.Reset(st, code)
		return
	}
	if service.Protocol == document.UDP {
		ends.Go(func() { s.carryDatagrams(r.accepting, in, st, conn.(*net.UDPConn), forget, service, begun) })
		return
	}
	seen := s.see(in, service, begun)
	seen.origin = origin
	seen.open(st)
	ends.Add(seen.done)
	counted := seen.counted
	local := conn.(splice.Conn)
	if _, err := st.Write([]byte{wire.Connected}); err != nil {
		forget()
		splice.Reset(local)
		transport.Reset(st, wire.Reset)
		return
	}
	gated := service.gates(in, origin)
	if gated || service.Identity == document.HTTPHeaders {
		ends.Go(func() { s.carryRequests(ctx, in, st, service, requests{local, forget, counted, origin, gated}) })
		return
	}
	ends.Keep()
	splice.Start(ctx, splice.Pair{
		Local: local, Stream: st, FromLocal: counted.Received, ToLocal: counted.Sent, Read: &in.Usage.Read, Limits: in.Limits, Closing: forget,
	}, func(err error) {
		seen.end = splice.Reason(err, "service", "caller")
		ends.Run()
	})
}

// carryOn serves a stream that this host relays to another host.
func (s *Server) carryOn(ctx context.Context, in *transport.Incoming, st wire.Stream, done func(opened bool), ends *handover.Ends) {
	begun := time.Now()
	st.SetReadDeadline(begun.Add(preambleTimeout))
	asks, label, err := wire.ReadLabel(st)
	if err == nil && asks == wire.Meet {
		s.introduce(in, st, label, done)
		return
	}
	code := wire.BadPreamble
	var to *Passage
	if err == nil {
		st.SetReadDeadline(time.Time{})
		to, code, err = s.Relay.Open(st.Context(), in.Peer.ID, label, func() {
			s.refuse(in, "", wire.Denied, "the routes changed")
			transport.Reset(st, wire.Denied)
		})
	}
	done(err == nil)
	s.trace(in, st, begun, code)
	if err != nil {
		s.refuse(in, "", code, err.Error())
		transport.Reset(st, code)
		return
	}
	ends.Add(to.Release)
	counted := s.Metrics.Begin(telemetry.In, in.Target, "", in.Peer.ID)
	counted.Opened(time.Since(begun))
	ends.Add(counted.Done)
	if _, err := st.Write([]byte{wire.Connected}); err != nil {
		transport.Reset(to.Stream, wire.Reset)
		transport.Reset(st, wire.Reset)
		return
	}
	ends.Go(func() {
		_ = splice.Join(ctx, splice.Joined{From: st, To: to.Stream, Sent: counted.Sent, Received: counted.Received, Read: &in.Usage.Read, Limits: in.Limits})
	})
}

// service reads the preamble of a stream. It returns the service that the preamble names, and the
// origin if the preamble contains one. If service returns an error, it also returns the code with
// which the stream must be reset.
func (s *Server) service(in *transport.Incoming, st wire.Stream) (published, wire.Origin, wire.Code, error) {
	none := wire.Origin{}
	services := s.rules.Load().published[in.Target]
	if len(services) == 0 {
		return published{}, none, wire.NotPublished, fmt.Errorf("%s is no longer published", in.Target)
	}
	var types []wire.StreamType
	for _, x := range services {
		types = append(types, carries(x.Protocol))
		if len(x.Entrances) > 0 {
			types = append(types, wire.Entered)
		}
	}
	st.SetReadDeadline(time.Now().Add(preambleTimeout))
	p, err := wire.Read(st, types...)
	if err != nil {
		return published{}, none, wire.BadPreamble, err
	}
	st.SetReadDeadline(time.Time{})
	carried := p.Type
	if carried == wire.Entered {
		carried = wire.TCP
	}
	at := slices.IndexFunc(services, func(x published) bool { return x.Port == p.Port && carries(x.Protocol) == carried })
	switch {
	case p.Target != in.Target:
		return published{}, none, wire.NotPublished, fmt.Errorf("the preamble names %s on a connection to %s", p.Target, in.Target)
	case at < 0:
		return published{}, none, wire.NotPublished, fmt.Errorf("the preamble is of type %d and names port %q, and %s has none of these", p.Type, p.Port, in.Target)
	case p.Type == wire.Entered && !slices.Contains(services[at].Entrances, in.Peer.ID):
		return published{}, none, wire.Denied, fmt.Errorf("it states the address of a stranger, and is no entrance of %s", in.Target)
	case in.Expired():
		return published{}, none, wire.Expired, fmt.Errorf("an SVID of the connection has expired")
	}
	return services[at], p.Origin, wire.Done, nil
}

// gates reports whether the caller must pass the gate of the service. An ingress has signed the
// person in already. A caller that has entered the cluster at a port of the ingress's host has not
// passed the ingress.
func (p published) gates(in *transport.Incoming, origin wire.Origin) bool {
	return p.Gate != nil && (origin.From.IsValid() || !slices.Contains(p.Gate.Ingresses, in.Peer.ID))
}

// carries returns the stream type for a protocol of a service.
func carries(p document.Protocol) wire.StreamType {
	if p == document.UDP {
		return wire.UDP
	}
	return wire.TCP
}

// admitPort checks whether the caller may use a port of a service with several ports. If a later
// allow list denies the port, the stream is reset.
func (s *Server) admitPort(in *transport.Incoming, st wire.Stream, port string, ends *handover.Ends) (wire.Code, error) {
	release, ok := s.ports.Admit(portKey{in, port}, func() {
		s.refuse(in, port, wire.Denied, fmt.Sprintf("the allow list of port %q changed", port))
		transport.Reset(st, wire.Denied)
	})
	if !ok {
		return wire.Denied, fmt.Errorf("not in the allow list of port %q", port)
	}
	ends.Add(release)
	return wire.Done, nil
}

// dial connects to the upstream of a service. If the service requires it, dial announces the caller
// to the upstream, and also the origin if there is one. The returned function must be called when
// the connection has ended.
func (s *Server) dial(ctx context.Context, in *transport.Incoming, service published, origin wire.Origin) (net.Conn, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, upstreamTimeout)
	defer cancel()
	conn, forget, err := s.Whois.Dial(whois.Upstream{
		Caller: in.Peer.ID, Service: in.Target, Protocol: service.Protocol, MayQuery: service.owner.Is,
	}, func() (net.Conn, error) { return upstream.Dial(ctx, service.Published, service.owner) })
	if err != nil || service.Identity != document.ProxyV2 {
		return conn, forget, err
	}
	header, err := announced(in, origin).ProxyHeader()
	if err == nil {
		_, err = conn.Write(header)
	}
	if err != nil {
		forget()
		conn.Close()
		return nil, nil, fmt.Errorf("PROXY protocol header: %w", err)
	}
	return conn, forget, nil
}

// announced returns the description of the caller that is announced to the service. If a stranger
// has connected to an entry of the caller's host, the addresses are those of the stranger's
// connection.
func announced(in *transport.Incoming, origin wire.Origin) announce.Caller {
	if !origin.From.IsValid() {
		origin = wire.Origin{From: addrPort(in.RemoteAddr()), To: addrPort(in.LocalAddr())}
	}
	return announce.Caller{ID: in.Peer.ID, Leaf: in.Peer.Leaf(), Service: in.Target, From: origin.From, To: origin.To}
}

func addrPort(a net.Addr) netip.AddrPort {
	has, ok := a.(interface{ AddrPort() netip.AddrPort }) // addresses of UDP and TCP have this method
	if !ok {
		return netip.AddrPort{}
	}
	at := has.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// exhausted lists the kernel errors that mean a shortage: no free files, ports or memory on this
// host, or a full queue at the upstream's socket (EAGAIN of a Unix socket).
var exhausted = []syscall.Errno{syscall.EAGAIN, syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// failure returns the code with which a stream is reset after dial has failed with an error. It
// returns Done if the error is nil.
func failure(err error) wire.Code {
	var foreign *upstream.ForeignError
	switch {
	case err == nil:
		return wire.Done
	case errors.As(err, &foreign):
		return wire.Foreign
	case errors.Is(err, syscall.ECONNREFUSED):
		return wire.Refused
	case slices.ContainsFunc(exhausted, func(e syscall.Errno) bool { return errors.Is(err, e) }):
		return wire.Busy
	}
	return wire.Unreachable
}

// refuse counts and logs that a stream of a verified peer was refused. The argument port is the
// name of the port; it is empty if the port is unknown or the service has only one.
func (s *Server) refuse(in *transport.Incoming, port string, code wire.Code, detail string) {
	peer := in.Peer.ID.String()
	s.count(journal.Source{Who: peer, Known: true}, telemetry.Refusal{
		Reason: code.String(), Target: in.Target.String(), Port: port, Peer: peer,
		Detail: fmt.Sprintf("from %s: %s", in.RemoteAddr(), detail), Known: code != wire.Denied,
	})
}

// rejected counts and logs a failed handshake. The identity that the peer claims is not proven, so
// it appears only as a detail.
func (s *Server) rejected(r transport.Rejection) {
	detail := fmt.Sprintf("from %s: %v", r.Remote, r.Err)
	if !r.Claims.IsZero() {
		detail = fmt.Sprintf("from %s, claims to be %s: %v", r.Remote, r.Claims, r.Err)
	}
	var who string
	if at := addrPort(r.Remote); at.IsValid() {
		who = journal.Address(at)
	}
	s.count(journal.Source{Who: who}, telemetry.Refusal{Reason: r.Reason, Target: r.Target.String(), Detail: detail})
}

func (s *Server) count(k journal.Source, r telemetry.Refusal) {
	r.Direction, r.Time = telemetry.In, time.Now()
	s.Metrics.Refuse(r)
	k.Reason = r.Reason
	s.refused.Warn(k, "refused", "direction", r.Direction, "reason", r.Reason, "target", r.Target, "peer", r.Peer, "detail", r.Detail)
}
