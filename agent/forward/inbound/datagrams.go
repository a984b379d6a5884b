package inbound

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/upstream"
	"github.com/florete/florete/agent/forward/wire"
)

// carryDatagrams carries the datagrams of a UDP session between the stream and the session's socket
// to the service, which is given by conn. It calls the function forget before it closes the socket.
func (s *Server) carryDatagrams(ctx context.Context, in *transport.Incoming, st wire.Stream, conn *net.UDPConn, forget func(), service published, begun time.Time) {
	defer conn.Close()
	defer forget()
	peer := upstream.NewPeer(conn, service.owner)
	socket, err := datagram.NewSocket(conn)
	if err != nil {
		transport.Reset(st, failure(err))
		return
	}
	seen := s.see(in, service, begun)
	defer seen.done()
	counted := seen.counted
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
		Limits:    in.Limits,
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
	forget()
	socket.Close()
	receiving.Wait()
	code := session.Code()
	seen.end = code.String()
	if code == wire.Refused || code == wire.Unreachable || code == wire.Foreign {
		s.refuse(in, service.Port, code, conn.RemoteAddr().String())
	}
}

// lost returns the code for an error of the socket to the service. It returns Done if the error
// means only that a datagram was lost.
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
