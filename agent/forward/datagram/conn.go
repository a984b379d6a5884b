// Package datagram carries the datagrams of UDP flows over QUIC connections (package
// wire), and sends and receives them at a local socket. Nothing here waits for
// anybody: a datagram that finds a queue full is dropped, as UDP allows, and counted.
package datagram

import (
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// Bounds of what may be under way.
const (
	MaxFlows = 4096      // of a connection; with one more the one that is idle longest ends
	maxHeld  = 256 << 10 // bytes of a flow that wait to be sent, see packet.cost
	maxAll   = 16 << 20  // the same, of all flows that share a Held
	maxAside = 64        // datagrams of a flow that wait for its stream
	maxOut   = 1024      // datagrams of all flows of a connection that wait for frames
)

// Conn is the part of a QUIC connection that its flows share.
type Conn struct {
	Read atomic.Int64 // bytes of datagrams that came

	quic  *quic.Conn
	tasks *sync.WaitGroup
	out   chan outgoing // nil until there is a flow

	mu    sync.Mutex
	flows map[quic.StreamID]*Flow
}

type outgoing struct {
	flow   *Flow
	packet packet
}

// Held is the cost of what waits to be sent in several flows.
type Held struct{ cost atomic.Int64 }

// Over is for the flows of one connection. What it starts, with the first of them,
// is among tasks and ends with the connection.
func Over(c *quic.Conn, tasks *sync.WaitGroup) *Conn {
	return &Conn{quic: c, tasks: tasks}
}

func (c *Conn) join(f *Flow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.flows) >= MaxFlows {
		idlest := c.idlest()
		delete(c.flows, idlest.stream.StreamID())
		idlest.End(wire.Done)
	}
	if c.out == nil {
		c.out, c.flows = make(chan outgoing, maxOut), map[quic.StreamID]*Flow{}
		c.tasks.Go(c.send)
		c.tasks.Go(c.receive)
	}
	c.flows[f.stream.StreamID()] = f
}

func (c *Conn) leave(id quic.StreamID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flows, id)
}

func (c *Conn) idlest() (idlest *Flow) {
	for _, f := range c.flows {
		if idlest == nil || f.Used() < idlest.Used() {
			idlest = f
		}
	}
	return idlest
}

// frame queues a packet for a frame.
func (c *Conn) frame(f *Flow, p packet) {
	select {
	case c.out <- outgoing{f, p}:
		if c.quic.Context().Err() != nil {
			c.dropAll()
		}
	default:
		f.drop(p)
	}
}

// dropAll gives back what flows of an ended connection held.
func (c *Conn) dropAll() {
	for {
		select {
		case o := <-c.out:
			o.flow.drop(o.packet)
		default:
			return
		}
	}
}

// send is the only one that waits until the connection takes a datagram.
func (c *Conn) send() {
	for {
		select {
		case o := <-c.out:
			if err := c.quic.SendDatagram(o.packet.frame(o.flow.stream.StreamID())); err == nil {
				o.flow.sent(o.packet)
			} else {
				// Too large for a frame, or the peer takes none.
				o.flow.aside(o.packet)
			}
		case <-c.quic.Context().Done():
			c.dropAll()
			return
		}
	}
}

func (c *Conn) receive() {
	for {
		b, err := c.quic.ReceiveDatagram(c.quic.Context())
		if err != nil {
			return
		}
		c.Read.Add(int64(len(b)))
		id, payload, err := wire.CutFlow(b)
		if err != nil {
			continue
		}
		c.mu.Lock()
		f := c.flows[id]
		c.mu.Unlock()
		// Of a flow that has ended here some may still come.
		if f != nil {
			f.fromPeer(payload)
		}
	}
}
