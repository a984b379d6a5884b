package inbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/logsum"
	"github.com/florete/florete/agent/forward/metrics"
	"github.com/florete/florete/agent/forward/splice"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/upstream"
	"github.com/florete/florete/agent/forward/wire"
)

const (
	preambleTimeout = 10 * time.Second
	upstreamTimeout = 10 * time.Second
)

// carry serves one stream, and calls done once its service is connected, or is not. A UDP
// session has no end of its own that could be waited for.
func (s *Server) carry(ctx context.Context, r *running, in *transport.Incoming, st *quic.Stream, done func(opened bool)) {
	service, conn, code, err := s.connect(in, st)
	done(err == nil)
	if err != nil {
		s.refuse(in, code, err.Error())
		transport.Reset(st, code)
		return
	}
	if service.Protocol == florete.UDP {
		s.carryDatagrams(r.accepting, in, st, conn.(*net.UDPConn), service.owner)
		return
	}
	counted := s.Metrics.Begin(metrics.In, in.Target, in.Peer.ID)
	defer counted.Done()
	local := conn.(splice.Conn)
	if _, err := st.Write([]byte{wire.Connected}); err != nil {
		splice.Reset(local)
		transport.Reset(st, wire.Reset)
		return
	}
	splice.Run(ctx, splice.Pair{Local: local, Stream: st, FromLocal: counted.Received, ToLocal: counted.Sent, Read: &in.Usage.Read})
}

// connect checks what the preamble names and connects to its upstream. The code
// goes with the error.
func (s *Server) connect(in *transport.Incoming, st *quic.Stream) (published, net.Conn, wire.Code, error) {
	service, ok := s.rules.Load().published[in.Target]
	if !ok {
		return service, nil, wire.NotPublished, fmt.Errorf("%s is no longer published", in.Target)
	}
	kind := wire.TCP
	if service.Protocol == florete.UDP {
		kind = wire.UDP
	}
	st.SetReadDeadline(time.Now().Add(preambleTimeout))
	p, err := wire.Read(st, kind)
	if err != nil {
		return service, nil, wire.BadPreamble, err
	}
	st.SetReadDeadline(time.Time{})
	switch {
	case p.Target != in.Target:
		return service, nil, wire.NotPublished, fmt.Errorf("the preamble names %s on a connection to %s", p.Target, in.Target)
	case in.Expired():
		return service, nil, wire.Expired, fmt.Errorf("an SVID of the connection has expired")
	}
	ctx, cancel := context.WithTimeout(st.Context(), upstreamTimeout)
	defer cancel()
	conn, err := upstream.Dial(ctx, service.Published, service.owner)
	return service, conn, failure(err), err
}

// exhausted are what the kernel returns when this host is out of files, ports or memory,
// or as many wait for the upstream as its queue holds (EAGAIN of a Unix socket).
var exhausted = []syscall.Errno{syscall.EAGAIN, syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// failure is the code for an upstream that cannot be reached; Done when it can.
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

// refuse counts a refusal of a verified peer.
func (s *Server) refuse(in *transport.Incoming, code wire.Code, detail string) {
	peer := in.Peer.ID.String()
	s.count(logsum.Key{Who: peer, Known: true}, metrics.Refusal{
		Reason: code.String(), Target: in.Target.String(), Peer: peer,
		Detail: fmt.Sprintf("from %s: %s", in.RemoteAddr(), detail),
	})
}

// rejected counts a failed handshake. Nothing proves who it was: the peer's claim
// is only a detail.
func (s *Server) rejected(r transport.Rejection) {
	detail := fmt.Sprintf("from %s: %v", r.Remote, r.Err)
	if !r.Claims.IsZero() {
		detail = fmt.Sprintf("from %s, claims to be %s: %v", r.Remote, r.Claims, r.Err)
	}
	var who string
	if addr, ok := r.Remote.(*net.UDPAddr); ok {
		who = logsum.Address(addr.AddrPort())
	}
	s.count(logsum.Key{Who: who}, metrics.Refusal{Reason: r.Reason, Target: r.Target.String(), Detail: detail})
}

func (s *Server) count(k logsum.Key, r metrics.Refusal) {
	r.Direction, r.Time = metrics.In, time.Now()
	s.Metrics.Refuse(r)
	k.Reason = r.Reason
	s.refused.Warn(k, "refused", "direction", r.Direction, "reason", r.Reason, "target", r.Target, "peer", r.Peer, "detail", r.Detail)
}
