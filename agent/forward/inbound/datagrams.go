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

// carryDatagrams joins a UDP flow to a socket of its own.
func (s *Server) carryDatagrams(ctx context.Context, in *transport.Incoming, st *quic.Stream, conn *net.UDPConn, owner upstream.Owner) {
	defer conn.Close()
	peer, err := upstream.NewPeer(conn, owner)
	if err != nil {
		transport.Reset(st, wire.Unreachable)
		return
	}
	defer peer.Close()
	socket, err := datagram.NewSocket(conn)
	if err != nil {
		conn.Close()
		transport.Reset(st, wire.Unreachable)
		return
	}
	counted := s.Tally.Begin(metrics.In, in.Target, in.Peer.ID)
	defer counted.Done()
	var f *datagram.Flow
	f = datagram.New(ctx, datagram.Local{
		Deliver: func(b []byte) {
			err := peer.Check()
			if err == nil {
				err = socket.Send(b)
			}
			if code := lost(err); code != wire.Done {
				f.End(code)
			}
		},
		Idle:      datagram.Idle,
		FromLocal: counted.Received,
		ToLocal:   counted.Sent,
		Dropped:   counted.Dropped,
		Held:      &s.peers.of(in.Peer.ID).held,
	})
	f.Attach(in.Flows, st)
	var receiving sync.WaitGroup
	_ = f.Run(func() error {
		if _, err := st.Write([]byte{wire.Connected}); err != nil {
			return err
		}
		receiving.Go(func() {
			for f.Context().Err() == nil {
				if err := socket.Receive(f.Send); err != nil {
					f.End(lost(err))
				}
			}
		})
		return nil
	})
	socket.Close()
	receiving.Wait()
	if code := f.Code(); code == wire.Refused || code == wire.Unreachable || code == wire.Foreign {
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
