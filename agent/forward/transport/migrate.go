package transport

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/internal/document"
)

const (
	// probeTimeout is how long a path is probed, probePause how long until the next time while
	// nothing is wrong.
	probeTimeout = 2 * time.Second
	probePause   = 30 * time.Second
	// migratePause is how long a connection that is silent waits on a path.
	migratePause = 1500 * time.Millisecond
)

// paths are those of a connection over the pool's sockets: one is used, the other is probed
// before it is needed. quic-go probes none while the congestion window is full, as it is when
// packets are lost that never pass.
type paths struct {
	probed   time.Time   // of who watches
	begun    time.Time   // to migrate, of who watches
	busy     atomic.Bool // somebody has what follows
	ready    atomic.Bool // spare leads to the peer
	migrated atomic.Bool // since the last measure

	socket      int
	used, spare *quic.Path // used is nil at first
}

// prepare probes the path to migrate to, once a check has shown that all is well. The caller holds the pool's lock.
func (p *Pool) prepare(l *quicLink, now time.Time) {
	x := &l.paths
	if x.ready.Load() || l.checks.sent == 0 || l.checks.overdue(now) > 0 || now.Sub(x.probed) < probePause {
		return
	}
	x.probed = now
	p.withPaths(l, func() {
		if x.probe(l.Conn, p.quic[1-x.socket]) {
			x.ready.Store(true)
		}
	})
}

// migrate has a connection go on over the pool's other socket (RFC 9000 section 9): from the
// address that the host has now, as a new flow to NATs and firewalls, and with packets of the
// smallest size again, at both ends. Its streams notice a pause. Where no other path is ready, it
// begins anew on the one it has, as if nothing were under way: quic-go would wait for longer
// each time, and not for the network. The caller holds the pool's lock.
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
			x.socket, x.used, x.spare = 1-x.socket, x.spare, nil
		case x.used == nil || x.used.Switch() != nil:
			return
		}
		x.migrated.Store(true)
		_ = l.SendDatagram(nil) // the peer follows with the first packet that is more than a probe
	})
}

// withPaths calls f with the paths, unless somebody else has them.
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

// watchNetwork has connections follow the host to other networks.
func (p *Pool) watchNetwork() {
	err := watchRoutes(p.ctx, p.follow)
	if err != nil {
		// Connections that fall silent migrate all the same.
		<-p.ctx.Done()
	}
}

// follow migrates connections whose packets would now come from another address, and makes new
// ones over TCP, which cannot.
func (p *Pool) follow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		source, err := sourceTo(c.at)
		if err != nil || source == c.source {
			continue // without a route it stays
		}
		c.source = source
		if l, ok := c.link.(*quicLink); ok {
			p.migrate(l)
		} else if c.transport == document.OverTCP && c.endpoint.current == c {
			c.endpoint.current = nil
			c.retire()
		}
	}
}
