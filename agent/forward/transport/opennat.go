package transport

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// This host sends punchPackets packets of one byte to a caller, one each punchEvery. After
	// that, the NAT in front of this host lets in packets from the caller. The packets are few and
	// small, because a relay could name the address of a stranger.
	punchPackets = 20
	punchEvery   = 50 * time.Millisecond
	// punchRate is the number of callers per second to which this host sends such packets.
	punchRate = 8
)

// puncher limits the packets that a listener sends to callers so that they can connect through this
// host's NAT.
type puncher struct {
	once    sync.Once
	limit   *rate.Limiter
	mu      sync.Mutex
	running map[netip.AddrPort]struct{}
}

// begin reports whether the listener may send packets to an address now. If it returns true, it
// records that packets are being sent to the address, until the method end is called.
func (p *puncher) begin(to netip.AddrPort) bool {
	p.once.Do(func() { p.limit, p.running = rate.NewLimiter(punchRate, punchRate), map[netip.AddrPort]struct{}{} })
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, is := p.running[to]; is || !p.limit.Allow() {
		return false
	}
	p.running[to] = struct{}{}
	return true
}

func (p *puncher) end(to netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, to)
}

// Punch prepares the NAT in front of this host for a caller at the address to, which is about to
// connect directly. For about a second, or until ctx ends, it sends small packets from the
// listener's socket to that address. The caller's forwarder drops these packets. Punch returns at
// once. Its goroutine is counted in tasks. Punch sends nothing if packets to this address are still
// being sent, or if it would exceed punchRate.
func (l *Listener) Punch(ctx context.Context, tasks *sync.WaitGroup, to netip.AddrPort) {
	if !l.punches.begin(to) {
		return
	}
	tasks.Go(func() {
		defer l.punches.end(to)
		next := time.NewTicker(punchEvery)
		defer next.Stop()
		for range punchPackets {
			_, _ = l.quic.WriteTo([]byte{0}, net.UDPAddrFromAddrPort(to))
			select {
			case <-next.C:
			case <-ctx.Done():
				return
			}
		}
	})
}
