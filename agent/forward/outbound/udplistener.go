package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
)

// udpListener receives datagrams of local processes. It is either the local listener of one
// service, or the socket of a SOCKS5 client, whose datagrams name their service. It has a session
// for each local address and service.
type udpListener struct {
	server *Server
	addr   netip.AddrPort
	conn   *net.UDPConn
	find   func(*rules, []byte) (destination, *refusal)
	entry  listenerKey     // listener of entries, if the manifest has any for it
	ctx    context.Context // context of the listener's sessions
	end    context.CancelFunc

	mu       sync.Mutex
	sessions map[sessionKey]*session
}

// destination is the service to which a datagram is to be sent.
type destination struct {
	connKey
	payload []byte
	head    []byte // header in front of the payloads in both directions
}

// sessionKey identifies a session of a listener.
type sessionKey struct {
	from  netip.AddrPort
	to    serviceKey
	doubt doubt // part of the key, so that a doubtful datagram cannot end another sender's session
}

// listenUDP returns the local listener of one service.
func (s *Server) listenUDP(addr netip.AddrPort) (*udpListener, error) {
	conn, err := s.Sockets.ListenUDP(addr)
	if err != nil {
		return nil, err
	}
	if addr.Addr().IsUnspecified() {
		if err := receiveLocal(conn); err != nil {
			conn.Close()
			return nil, err
		}
	}
	l := s.newUDPListener(conn, func(r *rules, b []byte) (destination, *refusal) {
		return destination{connKey: connKey{serviceKey: r.reachAt[listenerKey{addr, document.UDP}]}, payload: b}, nil
	})
	l.entry = listenerKey{addr, document.UDP}
	s.accepts.Go(l.receive)
	return l, nil
}

// newUDPListener returns a listener that uses the given socket, and closes it in the end. The
// function find returns the destination of a datagram.
func (s *Server) newUDPListener(conn *net.UDPConn, find func(*rules, []byte) (destination, *refusal)) *udpListener {
	conn.SetReadBuffer(datagram.BufferSize)
	_ = conns.Control(conn, caller.ReceiveMarks) // on error, datagrams count as unmarked
	l := &udpListener{server: s, addr: conn.LocalAddr().(*net.UDPAddr).AddrPort(), conn: conn, find: find, sessions: map[sessionKey]*session{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// Close closes the listener and ends its sessions.
func (l *udpListener) Close() error {
	l.end()
	return l.conn.Close()
}

// stop stops receiving datagrams. Answers for existing sessions are still sent to the processes.
func (l *udpListener) stop() { _ = l.conn.SetReadDeadline(time.Unix(1, 0)) }

func (l *udpListener) receive() {
	b, oob := make([]byte, 1<<16), make([]byte, caller.MarksSpace+localSpace)
	for {
		n, marks, _, from, err := l.conn.ReadMsgUDPAddrPort(b, oob)
		if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			l.server.failures.Pause(l.addr, err)
			continue
		}
		l.carry(from, b[:n], oob[:marks])
	}
}

// carry sends a datagram of a local process to its service. It uses the identity of the process
// that owns the source address now, because UDP has no connections by which an earlier owner could
// be found. If the kernel has marked the datagram, the mark must name the same account as this
// owner. If there is no mark, the listener must be reserved for one account.
func (l *udpListener) carry(from netip.AddrPort, payload, marks []byte) {
	r := l.server.rules.Load()
	if len(r.entries[l.entry]) > 0 {
		l.carryStranger(r, from, payload, marks)
		return
	}
	uid, err := caller.SenderUID(from, l.addr)
	if err != nil {
		l.server.refuse(connection{rules: r}, &refusal{becauseCallerGone, err.Error()})
		return
	}
	d, denied := l.find(r, payload)
	d.by.UID = uid
	if denied != nil {
		l.server.refuse(connection{connKey: d.connKey, rules: r}, denied)
		return
	}
	if sent, marked := caller.MarkedUID(marks); marked && sent != uid {
		d.doubt = notSender
	} else if !marked && !r.sole(d.connKey) {
		d.doubt = unproven
	}
	if !d.socks {
		d.as, _ = r.callers.Identity(d.by)
	}
	l.send(sessionKey{from, d.serviceKey, d.doubt}, d, nil, func() (connection, bool) {
		return connection{connKey: d.connKey, rules: r}, true
	})
}

// send sends a datagram in its session. If the session does not exist, send begins it for the
// connection that the function fresh returns. Answers are sent with the control messages in oob.
func (l *udpListener) send(k sessionKey, d destination, oob []byte, fresh func() (connection, bool)) {
	l.mu.Lock()
	x := l.sessions[k]
	if x == nil || x.by.UID != d.by.UID || x.over() {
		l.drop(x)
		c, ok := fresh()
		if !ok {
			l.mu.Unlock()
			return
		}
		x = l.begin(k, c, d.head, oob)
	}
	l.mu.Unlock()
	if x.Session != nil {
		x.send(d.payload)
	}
}
