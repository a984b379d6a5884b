package transport

import (
	"net"
	"sync"
	"sync/atomic"
)

// A handshake uses 80 KB for up to ten seconds, and anybody can begin one from a forged address.
const (
	// retryThreshold is the number of handshakes above which a peer must first prove its address
	// (RFC 9000, section 8.1.2), which costs a round trip.
	retryThreshold = 128
	// maxHandshakes is the maximum number of handshakes; further ones are refused.
	maxHandshakes = 4096
)

// handshakes counts handshakes under way.
type handshakes struct{ n atomic.Int64 }

// begin counts a handshake, unless there are too many. end may be called more than once.
func (h *handshakes) begin() (end func(), ok bool) {
	if h.n.Add(1) > maxHandshakes {
		h.n.Add(-1)
		return nil, false
	}
	return sync.OnceFunc(func() { h.n.Add(-1) }), true
}

// verify reports whether a peer must prove its address.
func (h *handshakes) verify(net.Addr) bool { return h.n.Load() >= retryThreshold }
