package inbound

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"

	"github.com/quic-go/quic-go"

	"florete/agent/datagram"
	"florete/agent/tally"
	"florete/agent/transport"
	"florete/agent/wire"
)

// carryDatagrams joins a UDP flow to a socket of its own.
func (s *Server) carryDatagrams(ctx context.Context, in *transport.Incoming, st *quic.Stream, conn *net.UDPConn) {
	upstream, err := datagram.NewSocket(conn)
	if err != nil {
		conn.Close()
		transport.Reset(st, wire.Unreachable)
		return
	}
	counted := s.Tally.Begin(tally.In, in.Target, in.Peer.ID)
	defer counted.Done()
	var f *datagram.Flow
	f = datagram.New(ctx, datagram.Local{
		Deliver: func(b []byte) {
			if code := lost(upstream.Send(b)); code != wire.Done {
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
	f.Run(func() error {
		if _, err := st.Write([]byte{wire.Connected}); err != nil {
			return err
		}
		receiving.Go(func() {
			for f.Context().Err() == nil {
				if err := upstream.Receive(f.Send); err != nil {
					f.End(lost(err))
				}
			}
		})
		return nil
	})
	upstream.Close()
	receiving.Wait()
	if code := f.Code(); code == wire.Refused || code == wire.Unreachable {
		s.refuse(in, code, conn.RemoteAddr().String())
	}
}

// lost is the code that says why an upstream can no longer be reached; Done when it
// can, and only a datagram was lost.
func lost(err error) wire.Code {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return wire.Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return wire.Unreachable
	}
	return wire.Done
}
