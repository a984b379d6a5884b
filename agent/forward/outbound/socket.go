package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/agent/forward/datagram"
)

// socket is the local listener of a service that is reached over UDP, or of a SOCKS5
// client for what it names. It has a flow for each local address that sends to it, and
// each service.
type socket struct {
	server  *Server
	addr    netip.AddrPort
	conn    *net.UDPConn
	senders *caller.Senders
	find    func(*rules, []byte) (destination, *refusal)
	ctx     context.Context // of its flows
	end     context.CancelFunc

	mu    sync.Mutex
	flows map[way]*sender
}

// destination is where a datagram goes.
type destination struct {
	flow
	payload []byte
	head    []byte // what stands in front of payloads in both directions
}

// way is what tells flows of a socket apart.
type way struct {
	from   netip.AddrPort
	target florete.ID
	doubt  doubt // what nobody is let through for must not end another's flow
}

// open listens for one service.
func (s *Server) open(addr netip.AddrPort) (*socket, error) {
	conn, err := s.Sockets.ListenUDP(addr)
	if err != nil {
		return nil, err
	}
	l, err := s.newSocket(conn, func(r *rules, b []byte) (destination, *refusal) {
		return destination{flow: flow{target: r.reachAt[addr].ID, protocol: florete.UDP}, payload: b}, nil
	})
	if err == nil {
		s.accepts.Go(l.receive)
	}
	return l, err
}

// newSocket takes over conn.
func (s *Server) newSocket(conn *net.UDPConn, find func(*rules, []byte) (destination, *refusal)) (*socket, error) {
	conn.SetReadBuffer(datagram.BufferSize)
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = caller.ReceiveMarks(fd) }) // without, nothing is marked
	}
	senders, err := caller.OpenSenders()
	if err != nil {
		conn.Close()
		return nil, err
	}
	l := &socket{server: s, addr: conn.LocalAddr().(*net.UDPAddr).AddrPort(), conn: conn, senders: senders, find: find, flows: map[way]*sender{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l, nil
}

// Close ends the socket and its flows.
func (l *socket) Close() error {
	l.end()
	return l.conn.Close()
}

func (l *socket) receive() {
	defer l.senders.Close()
	b, oob := make([]byte, 1<<16), make([]byte, caller.MarksSpace)
	for {
		n, marks, _, from, err := l.conn.ReadMsgUDPAddrPort(b, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.server.Log.Error("receive", "listener", l.addr, "error", err)
			time.Sleep(acceptPause)
			continue
		}
		l.take(from, b[:n], oob[:marks])
	}
}

// take carries a datagram under the identity of whoever has its source address now:
// UDP has no connections, so who had it before says nothing. Where the kernel marks who
// has sent it, that must be the same account; where it does not, one account alone may
// send there.
func (l *socket) take(from netip.AddrPort, payload, marks []byte) {
	uid, err := l.senders.UID(from, l.addr)
	if err != nil {
		l.server.refuse(flow{}, &refusal{reason: "caller-gone", detail: err.Error()})
		return
	}
	r := l.server.rules.Load()
	d, no := l.find(r, payload)
	d.uid = uid
	if no != nil {
		l.server.refuse(d.flow, no)
		return
	}
	if sent, marked := caller.MarkedUID(marks); marked && sent != uid {
		d.doubt = notSender
	} else if !marked && !r.sole(d.flow) {
		d.doubt = unproven
	}
	if !d.socks {
		d.as, _ = r.callers.Identity(d.uid)
	}
	w := way{from, d.target, d.doubt}
	l.mu.Lock()
	x := l.flows[w]
	if x == nil || x.uid != d.uid || x.over() {
		l.drop(x)
		x = l.begin(w, d)
	}
	l.mu.Unlock()
	if x.Flow != nil {
		x.Send(d.payload)
	}
}
