package transport

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/internal/document"
)

const (
	// probeTimeout is the time for which a path is probed. probePause is the time between probes
	// while the connection works.
	probeTimeout = 2 * time.Second
	probePause   = 30 * time.Second
	// migratePause is the time for which a silent connection stays on a path.
	migratePause = 1500 * time.Millisecond
)

// paths contains the paths of a connection over the pool's two sockets: the used one, and a spare
// one that is probed in advance. quic-go does not probe while the congestion window is full, which
// happens when packets are lost that never pass.
type paths struct {
	probed   time.Time   // last probe; only used by watch
	begun    time.Time   // last migration; only used by watch
	busy     atomic.Bool // guards the following fields
	ready    atomic.Bool // spare leads to the peer
	migrated atomic.Bool // since the last measurement

	socket      atomic.Int32 // in use
	used, spare *quic.Path   // used is nil at first
}

// prepare probes the spare path after a check has shown that the connection works. The caller holds
// the pool's lock.
func (p *Pool) prepare(l *quicLink, now time.Time) {
	x := &l.paths
	if x.ready.Load() || l.checks.sent == 0 || l.checks.overdue(now) > 0 || now.Sub(x.probed) < probePause {
		return
	}
	x.probed = now
	p.withPaths(l, func() {
		if x.probe(l.Conn, p.quic[1-x.socket.Load()]) {
			x.ready.Store(true)
		}
	})
}

// migrate moves a connection to the pool's other socket (RFC 9000, section 9). The connection then
// uses the host's current address, is a new flow to NATs and firewalls, and starts with the
// smallest packet size at both ends. Its streams only notice a pause. If the spare path is not
// ready, the congestion state is reset on the current path, because quic-go would retransmit at
// ever longer intervals. The caller holds the pool's lock.
func (p *Pool) migrate(l *quicLink) {
	p.withPaths(l, func() {
		x := &l.paths
		switch {
		case x.ready.Swap(false):
			if x.spare.Switch() != nil {
				return
			}
			if x.used != nil {
				_ = x.used.Close()
			}
			x.used, x.spare = x.spare, nil
			x.socket.Store(1 - x.socket.Load())
		case x.used == nil || x.used.Switch() != nil:
			return
		}
		x.migrated.Store(true)
		_ = l.SendDatagram(nil) // the peer follows with the first packet that is not only a probe
	})
}

// withPaths calls f with exclusive access to the paths. It does nothing if another goroutine has
// them.
func (p *Pool) withPaths(l *quicLink, f func()) {
	if p.ctx.Err() != nil || l.paths.busy.Swap(true) {
		return
	}
	p.busy.Go(func() {
		defer l.paths.busy.Store(false)
		f()
	})
}

func (x *paths) probe(c *quic.Conn, over *quic.Transport) bool {
	if x.spare == nil {
		var err error
		if x.spare, err = c.AddPath(over); err != nil {
			return false
		}
	}
	ctx, cancel := context.WithTimeout(c.Context(), probeTimeout)
	defer cancel()
	return x.spare.Probe(ctx) == nil
}

// watchNetwork makes connections follow the host to other networks.
func (p *Pool) watchNetwork() {
	err := watchRoutes(p.ctx, p.follow)
	if err != nil {
		// Silent connections migrate in any case.
		<-p.ctx.Done()
	}
}

// follow migrates connections whose packets would now have another source address. Connections over
// TCP cannot migrate and are replaced.
func (p *Pool) follow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		source, err := sourceTo(c.at)
		if err != nil || source == c.source {
			continue // without a route the connection is kept
		}
		c.source = source
		p.punchAnew()
		p.rejoin(c)
		if l, ok := c.link.(*quicLink); ok {
			p.migrate(l)
		} else if c.transport == document.OverTCP && c.endpoint.current == c {
			c.endpoint.current = nil
			c.retire()
		}
	}
}
