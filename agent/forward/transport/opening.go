package transport

import (
	"net"
	"sync"
	"sync/atomic"
)

// Handshakes under way take 80 KB each for up to ten seconds, and anybody can begin
// them, under any address.
const (
	// unverified is with how many more a peer must first show that it has its address
	// (RFC 9000 section 8.1.2), which costs it a round trip.
	unverified = 128
	// maxOpening is how many there are at most; more are refused.
	maxOpening = 4096
)

// opening counts handshakes under way.
type opening struct{ n atomic.Int64 }

// begin counts one in, unless there are too many. end may be called more than once.
func (o *opening) begin() (end func(), ok bool) {
	if o.n.Add(1) > maxOpening {
		o.n.Add(-1)
		return nil, false
	}
	return sync.OnceFunc(func() { o.n.Add(-1) }), true
}

// verify tells whether a peer must show that it has its address.
func (o *opening) verify(net.Addr) bool { return o.n.Load() >= unverified }
