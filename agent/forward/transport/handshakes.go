package transport

import (
	"net"
	"sync"
	"sync/atomic"
)

// Handshakes under way take 80 KB each for up to ten seconds, and anybody can begin
// them, under any address.
const (
	// retryThreshold is with how many more a peer must first show that it has its address
	// (RFC 9000 section 8.1.2), which costs it a round trip.
	retryThreshold = 128
	// maxHandshakes is how many there are at most; more are refused.
	maxHandshakes = 4096
)

// handshakes counts handshakes under way.
type handshakes struct{ n atomic.Int64 }

// begin counts one in, unless there are too many. end may be called more than once.
func (h *handshakes) begin() (end func(), ok bool) {
	if h.n.Add(1) > maxHandshakes {
		h.n.Add(-1)
		return nil, false
	}
	return sync.OnceFunc(func() { h.n.Add(-1) }), true
}

// verify reports whether a peer must show that it has its address.
func (h *handshakes) verify(net.Addr) bool { return h.n.Load() >= retryThreshold }
