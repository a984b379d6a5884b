package datagram

import (
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

// packet is a payload with free space for a prefix.
type packet []byte

const headroom = 8 // length of the longest varint

func newPacket(payload []byte) packet {
	p := make(packet, headroom+len(payload))
	copy(p[headroom:], payload)
	return p
}

func (p packet) size() int64 { return int64(len(p) - headroom) }

// cost returns the cost of a packet in a queue. It includes overhead, so that small packets are not
// free.
func (p packet) cost() int64 { return int64(len(p)) + 1024 }

// frame returns the packet in the form of a DATAGRAM frame.
func (p packet) frame(stream quic.StreamID) []byte {
	var id [headroom]byte
	head := wire.AppendStreamID(id[:0], stream)
	return p.with(head)
}

// framed returns the packet in the form used on a stream.
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

// pool is a pool of buffers into which any datagram fits.
type pool struct{ free sync.Pool }

func (p *pool) get() []byte {
	if b, ok := p.free.Get().(*[1 << 16]byte); ok {
		return b[:]
	}
	return new([1 << 16]byte)[:]
}

func (p *pool) put(b []byte) { p.free.Put((*[1 << 16]byte)(b)) }
