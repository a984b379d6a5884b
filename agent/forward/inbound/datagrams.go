package inbound

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/metrics"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/upstream"
	"github.com/florete/florete/agent/forward/wire"
)

// carryDatagrams joins a UDP session to a socket of its own.
func (s *Server) carryDatagrams(ctx context.Context, in *transport.Incoming, st *quic.Stream, conn *net.UDPConn, owner upstream.Owner) {
	defer conn.Close()
	peer := upstream.NewPeer(conn, owner)
	socket, err := datagram.NewSocket(conn)
	if err != nil {
		transport.Reset(st, failure(err))
		return
	}
	counted := s.Metrics.Begin(metrics.In, in.Target, in.Peer.ID)
	defer counted.Done()
	var session *datagram.Session
	session = datagram.New(ctx, datagram.Local{
		Deliver: func(b []byte) {
			err := peer.Check()
			if err == nil {
				err = socket.Send(b)
			}
			if code := lost(err); code != wire.Done {
				session.End(code)
			}
		},
		Idle:      datagram.Idle,
		FromLocal: counted.Received,
		ToLocal:   counted.Sent,
		Dropped:   counted.Dropped,
		Held:      &s.peers.of(in.Peer.ID).held,
	})
	session.Attach(in.Mux, st)
	var receiving sync.WaitGroup
	_ = session.Run(func() error {
		if _, err := st.Write([]byte{wire.Connected}); err != nil {
			return err
		}
		receiving.Go(func() {
			for session.Context().Err() == nil {
				if err := socket.Receive(session.Send); err != nil {
					session.End(lost(err))
				}
			}
		})
		return nil
	})
	socket.Close()
	receiving.Wait()
	if code := session.Code(); code == wire.Refused || code == wire.Unreachable || code == wire.Foreign {
		s.refuse(in, code, conn.RemoteAddr().String())
	}
}

// lost is the code that says why an upstream can no longer be reached; Done when it
// can, and only a datagram was lost.
func lost(err error) wire.Code {
	var foreign *upstream.ForeignError
	switch {
	case errors.As(err, &foreign):
		return wire.Foreign
	case errors.Is(err, syscall.ECONNREFUSED):
		return wire.Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return wire.Unreachable
	}
	return wire.Done
}
