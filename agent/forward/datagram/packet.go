package datagram

import (
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// packet is the payload of a datagram. In front of the payload there is space for a prefix.
type packet []byte

const headroom = 8 // length of the longest varint

func newPacket(payload []byte) packet {
	p := make(packet, headroom+len(payload))
	copy(p[headroom:], payload)
	return p
}

func (p packet) size() int64 { return int64(len(p) - headroom) }

// cost returns the cost of a packet in a queue, in bytes. The cost includes overhead, because small
// packets also use memory.
func (p packet) cost() int64 { return int64(len(p)) + 1024 }

// frame returns the packet as a DATAGRAM frame of the given stream.
func (p packet) frame(stream quic.StreamID) []byte {
	var id [headroom]byte
	head := wire.AppendStreamID(id[:0], stream)
	return p.with(head)
}

// framed returns the packet as it is sent on a stream, after its length.
func (p packet) framed() []byte {
	var length [2]byte
	return p.with(wire.AppendLength(length[:0], len(p)-headroom))
}

func (p packet) with(head []byte) []byte {
	b := p[headroom-len(head):]
	copy(b, head)
	return b
}

var buffers pool

// pool is a pool of buffers. Each buffer has room for any datagram.
type pool struct{ free sync.Pool }

func (p *pool) get() []byte {
	if b, ok := p.free.Get().(*[1 << 16]byte); ok {
		return b[:]
	}
	return new([1 << 16]byte)[:]
}

func (p *pool) put(b []byte) { p.free.Put((*[1 << 16]byte)(b)) }
