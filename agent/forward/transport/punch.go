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
	// Packets of one byte are sent to a caller so that the NAT in front of this host lets in what
	// the caller sends. They are few and small: a relay could name the address of a stranger.
	punchPackets = 20
	punchEvery   = 50 * time.Millisecond
	// punchRate bounds how many callers are sent packets to, per second.
	punchRate = 8
)

// puncher sends packets from the socket of a listener to callers.
type puncher struct {
	once    sync.Once
	limit   *rate.Limiter
	mu      sync.Mutex
	running map[netip.AddrPort]struct{}
}

// begin reports whether packets may be sent to an address, and records that they are.
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

// Punch sends packets to the address of a caller that is about to connect, until ctx ends or the
// packets have been sent. It sends none if it has just sent some, or many to others. The caller's
// forwarder drops them.
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
