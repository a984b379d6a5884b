package inbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"florete"
	"florete/agent/logsum"
	"florete/agent/splice"
	"florete/agent/tally"
	"florete/agent/transport"
	"florete/agent/wire"
)

const (
	preambleTimeout = 10 * time.Second
	upstreamTimeout = 10 * time.Second
)

// carry serves one stream, and calls done once its service is connected, or is not. A UDP
// flow has no end of its own that could be waited for.
func (s *Server) carry(ctx context.Context, r *running, in *transport.Incoming, st *quic.Stream, done func(opened bool)) {
	conn, code, err := s.connect(in, st)
	done(err == nil)
	if err != nil {
		s.refuse(in, code, err.Error())
		transport.Reset(st, code)
		return
	}
	if udp, ok := conn.(*net.UDPConn); ok {
		s.carryDatagrams(r.accepting, in, st, udp)
		return
	}
	flow := s.Tally.Begin(tally.In, in.Target, in.Peer.ID)
	defer flow.Done()
	upstream := conn.(splice.Conn)
	if _, err := st.Write([]byte{wire.Connected}); err != nil {
		splice.Reset(upstream)
		transport.Reset(st, wire.Reset)
		return
	}
	splice.Run(ctx, splice.Pair{Local: upstream, Stream: st, FromLocal: flow.Received, ToLocal: flow.Sent, Read: &in.Usage.Read})
}

// connect checks what the stream asks for and connects to its upstream. The code
// goes with the error.
func (s *Server) connect(in *transport.Incoming, st *quic.Stream) (net.Conn, wire.Code, error) {
	published, ok := s.rules.Load().published[in.Target]
	if !ok {
		return nil, wire.NotPublished, fmt.Errorf("%s is no longer published", in.Target)
	}
	kind, network := wire.TCP, "tcp"
	if published.Protocol == florete.UDP {
		kind, network = wire.UDP, "udp"
	}
	st.SetReadDeadline(time.Now().Add(preambleTimeout))
	p, err := wire.Read(st, kind)
	if err != nil {
		return nil, wire.BadPreamble, err
	}
	st.SetReadDeadline(time.Time{})
	switch {
	case p.Target != in.Target:
		return nil, wire.NotPublished, fmt.Errorf("stream asks for %s on a connection to %s", p.Target, in.Target)
	case in.Expired():
		return nil, wire.Expired, fmt.Errorf("an SVID of the connection has expired")
	}
	dialer := net.Dialer{Timeout: upstreamTimeout}
	addr := published.Upstream
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	conn, err := dialer.DialContext(st.Context(), network, addr)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, wire.Refused, err
	}
	if err != nil {
		return nil, wire.Unreachable, err
	}
	return conn, wire.Done, nil
}

// refuse counts a refusal of a verified peer.
func (s *Server) refuse(in *transport.Incoming, code wire.Code, detail string) {
	peer := in.Peer.ID.String()
	s.count(logsum.Key{Who: peer, Known: true}, tally.Refusal{
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
	s.count(logsum.Key{Who: who}, tally.Refusal{Reason: r.Reason, Target: r.Target.String(), Detail: detail})
}

func (s *Server) count(k logsum.Key, r tally.Refusal) {
	r.Side, r.Time = tally.In, time.Now()
	s.Tally.Refuse(r)
	k.Reason = r.Reason
	s.refused.Warn(k, "refused", "side", r.Side, "reason", r.Reason, "target", r.Target, "peer", r.Peer, "detail", r.Detail)
}
