package datagram

import (
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// Limits of queues and sessions.
const (
	MaxSessions = 4096      // per connection; one more ends the session that has been idle for longest
	maxHeld     = 256 << 10 // maximum cost of a session's packets that wait to be sent; see packet.cost
	maxAll      = 16 << 20  // maximum cost of all sessions that share a Held
	maxAside    = 64        // datagrams of a session that wait for its stream
	maxOut      = 1024      // datagrams of all sessions of a connection that wait for frames
)

// Mux distributes the datagrams of one connection between two forwarders among the UDP sessions
// that share it. It is safe for concurrent use.
type Mux struct {
	Read atomic.Int64 // bytes of datagrams received so far

	quic  *quic.Conn
	tasks *sync.WaitGroup
	out   chan outgoing // nil until the first session begins

	mu       sync.Mutex
	sessions map[quic.StreamID]*Session
}

type outgoing struct {
	session *Session
	packet  packet
}

// Held counts the memory of packets that wait in the queues of several UDP sessions, so that one
// limit can apply to all of them. The method packet.cost defines how much a packet counts. The zero
// Held is ready for use.
type Held struct{ cost atomic.Int64 }

// NewMux returns a Mux for the sessions of a QUIC connection. If c is nil, the sessions use a
// connection over TCP, and each datagram is sent on the stream of its session. The goroutines of
// the Mux are counted in tasks. They start with the first session and end with the connection.
func NewMux(c *quic.Conn, tasks *sync.WaitGroup) *Mux {
	return &Mux{quic: c, tasks: tasks}
}

func (m *Mux) join(s *Session) {
	if m.quic == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sessions) >= MaxSessions {
		idlest := m.idlest()
		delete(m.sessions, idlest.stream.StreamID())
		idlest.End(wire.Done)
	}
	if m.out == nil {
		m.out, m.sessions = make(chan outgoing, maxOut), map[quic.StreamID]*Session{}
		m.tasks.Go(m.send)
		m.tasks.Go(m.receive)
	}
	m.sessions[s.stream.StreamID()] = s
}

func (m *Mux) leave(id quic.StreamID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sessions, id)
}

func (m *Mux) idlest() (idlest *Session) {
	for _, s := range m.sessions {
		if idlest == nil || s.Used() < idlest.Used() {
			idlest = s
		}
	}
	return idlest
}

// frame queues a packet of session s, to be sent in a DATAGRAM frame.
func (m *Mux) frame(s *Session, p packet) {
	if m.quic == nil {
		s.aside(p)
		return
	}
	select {
	case m.out <- outgoing{s, p}:
		if m.quic.Context().Err() != nil {
			m.dropAll()
		}
	default:
		s.drop(p)
	}
}

// dropAll drops all queued packets after the connection has ended. The sessions then no longer hold
// them.
func (m *Mux) dropAll() {
	for {
		select {
		case o := <-m.out:
			o.session.drop(o.packet)
		default:
			return
		}
	}
}

// send sends queued packets in DATAGRAM frames. It is the only goroutine that may block on the
// connection.
func (m *Mux) send() {
	for {
		select {
		case o := <-m.out:
			if err := m.quic.SendDatagram(o.packet.frame(o.session.stream.StreamID())); err == nil {
				o.session.sent(o.packet)
			} else {
				// The packet is too large for a frame, or the peer does not support frames.
				o.session.aside(o.packet)
			}
		case <-m.quic.Context().Done():
			m.dropAll()
			return
		}
	}
}

func (m *Mux) receive() {
	for {
		b, err := m.quic.ReceiveDatagram(m.quic.Context())
		if err != nil {
			return
		}
		m.Read.Add(int64(len(b)))
		id, payload, err := wire.CutStreamID(b)
		if err != nil {
			continue
		}
		m.mu.Lock()
		s := m.sessions[id]
		m.mu.Unlock()
		// Datagrams may still arrive after their session has ended on this side.
		if s != nil {
			s.fromPeer(payload)
		}
	}
}
