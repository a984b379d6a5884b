package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"florete/agent/caller"
	"florete/agent/datagram"
	"florete/agent/wire"
)

// socket is the local listener of a service that is reached over UDP. It has a flow
// for each local address that sends to it.
type socket struct {
	server  *Server
	addr    netip.AddrPort
	conn    *net.UDPConn
	senders *caller.Senders
	ctx     context.Context // of its flows
	end     context.CancelFunc

	mu    sync.Mutex
	flows map[netip.AddrPort]*sender
}

func (s *Server) open(addr netip.AddrPort) (*socket, error) {
	conn, err := s.Sockets.ListenUDP(addr)
	if err != nil {
		return nil, err
	}
	conn.SetReadBuffer(datagram.BufferSize)
	senders, err := caller.OpenSenders()
	if err != nil {
		conn.Close()
		return nil, err
	}
	l := &socket{server: s, addr: addr, conn: conn, senders: senders, flows: map[netip.AddrPort]*sender{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	s.accepts.Go(l.receive)
	return l, nil
}

// Close ends the socket and its flows.
func (l *socket) Close() error {
	l.end()
	return l.conn.Close()
}

func (l *socket) receive() {
	defer l.senders.Close()
	b := make([]byte, wire.MaxPayload)
	for {
		n, from, err := l.conn.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.server.Log.Error("receive", "listener", l.addr, "error", err)
			time.Sleep(acceptPause)
			continue
		}
		l.take(from, b[:n])
	}
}

// take carries a datagram under the identity of whoever has its source address now:
// UDP has no connections, so who had it before says nothing.
func (l *socket) take(from netip.AddrPort, payload []byte) {
	uid, err := l.senders.UID(from, l.addr)
	if err != nil {
		l.server.refuse(flow{}, &refusal{reason: "caller-gone", detail: err.Error()})
		return
	}
	l.mu.Lock()
	x := l.flows[from]
	if x == nil || x.uid != uid || x.over() {
		l.drop(x)
		x = l.begin(from, uid)
	}
	l.mu.Unlock()
	if x.Flow != nil {
		x.Send(payload)
	}
}
