package transport

import (
	"net"
	"sync"
	"sync/atomic"
)

// A TLS handshake uses 80 KB for up to ten seconds, and anybody can begin one from a forged
// address. These limits bound the memory that such handshakes use.
const (
	// retryThreshold is the number of handshakes under way at which a new peer must first prove
	// its address (RFC 9000, section 8.1.2). The proof costs the peer a round trip.
	retryThreshold = 128
	// maxHandshakes is the maximum number of handshakes under way. Further handshakes are refused.
	maxHandshakes = 4096
)

// handshakes counts the handshakes that are under way at a listener.
type handshakes struct{ n atomic.Int64 }

// begin counts a new handshake. The caller calls the function end when the handshake is over, and
// may call it more than once. If too many handshakes are under way, begin does not count the
// handshake and returns false.
func (h *handshakes) begin() (end func(), ok bool) {
	if h.n.Add(1) > maxHandshakes {
		h.n.Add(-1)
		return nil, false
	}
	return sync.OnceFunc(func() { h.n.Add(-1) }), true
}

// verify reports whether a new peer must prove its address before its handshake.
func (h *handshakes) verify(net.Addr) bool { return h.n.Load() >= retryThreshold }
