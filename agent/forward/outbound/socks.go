package outbound

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/things-go/go-socks5"
	"github.com/things-go/go-socks5/statute"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/metrics"
	"github.com/florete/florete/agent/forward/splice"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
)

// negotiationTimeout bounds what comes before the SOCKS5 request.
const negotiationTimeout = 10 * time.Second

// socks speaks SOCKS5 with a process that acts under the listener's identity.
func (s *Server) socks(ctx context.Context, conn *net.TCPConn, f flow) {
	if no := s.rules.Load().caller(f); no != nil {
		s.refuse(f, no)
		reset(conn)
		return
	}
	conn.SetDeadline(time.Now().Add(negotiationTimeout))
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	notSupported := func(_ context.Context, w io.Writer, _ *socks5.Request) error {
		return reply(w, statute.RepCommandNotSupported)
	}
	server := socks5.NewServer(
		socks5.WithResolver(noResolver{}),
		socks5.WithBindHandle(notSupported),
		socks5.WithAssociateHandle(func(context.Context, io.Writer, *socks5.Request) error {
			conn.SetDeadline(time.Time{})
			return s.associate(conn, f)
		}),
		socks5.WithConnectHandle(func(_ context.Context, w io.Writer, r *socks5.Request) error {
			conn.SetDeadline(time.Time{})
			return s.connect(ctx, conn, r, f)
		}),
	)
	if err := server.ServeConn(conn); err != nil {
		s.Log.Debug("socks", "peer", f.as, "error", err)
	}
}

// noResolver leaves names alone: no name is ever looked up in DNS.
type noResolver struct{}

func (noResolver) Resolve(ctx context.Context, _ string) (context.Context, net.IP, error) {
	return ctx, nil, nil
}

// connect serves the request CONNECT. Its reply waits for the far side's answer.
func (s *Server) connect(ctx context.Context, conn *net.TCPConn, r *socks5.Request, f flow) error {
	target, code, err := s.rules.Load().resolve(r.RawDestAddr)
	f.target = target
	if err != nil {
		s.refuse(f, &refusal{"bad-name", err.Error()})
		return reply(conn, code)
	}
	ctx, end, ok := s.admit(ctx, f)
	if !ok {
		return reply(conn, statute.RepRuleFailure)
	}
	defer end()
	st, err := s.request(ctx, f, nil)
	if err != nil {
		s.refuse(f, explain(err))
		return reply(conn, replyTo(err))
	}
	defer st.Release()
	early, err := buffered(r.Reader)
	if err == nil {
		err = reply(conn, statute.RepSuccess)
	}
	if err != nil {
		transport.Reset(st.Stream, wire.Reset)
		return err
	}
	counted := s.Tally.Begin(metrics.Out, f.target, f.as)
	defer counted.Done()
	return splice.Run(ctx, splice.Pair{Local: conn, Stream: st.Stream, Early: early, FromLocal: counted.Sent, ToLocal: counted.Received, Read: &st.Usage().Read})
}

// buffered is what the SOCKS5 reader has taken beyond the request.
func buffered(r io.Reader) ([]byte, error) {
	b, ok := r.(*bufio.Reader)
	if !ok {
		return nil, errors.New("socks: request without its reader")
	}
	return b.Peek(b.Buffered())
}

// resolve finds the service behind a destination. It must be given by name; a name
// is one service, which has one port, so the destination's port says nothing.
func (r *rules) resolve(dest *statute.AddrSpec) (florete.ID, uint8, error) {
	if dest.FQDN == "" {
		return florete.ID{}, statute.RepAddrTypeNotSupported, fmt.Errorf("destination %s: want a name that ends in .rete", dest)
	}
	d, err := florete.Resolve(dest.FQDN, r.trustDomain)
	if err != nil {
		return florete.ID{}, statute.RepHostUnreachable, err
	}
	return d.ID(), 0, nil
}

func reply(w io.Writer, code uint8) error {
	return socks5.SendReply(w, code, &net.TCPAddr{IP: net.IPv4zero})
}

// replyTo is the reply that says best what went wrong.
func replyTo(err error) uint8 {
	var refused *transport.RefusedError
	if !errors.As(err, &refused) {
		if errors.Is(err, transport.ErrNoIdentity) || errors.Is(err, transport.ErrExpired) {
			return statute.RepServerFailure
		}
		return statute.RepHostUnreachable
	}
	switch refused.Code {
	case wire.Denied, wire.Untrusted:
		return statute.RepRuleFailure
	case wire.Refused:
		return statute.RepConnectionRefused
	case wire.NotPublished, wire.Unreachable, wire.Foreign:
		return statute.RepHostUnreachable
	}
	return statute.RepServerFailure
}
