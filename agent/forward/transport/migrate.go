package transport

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/internal/document"
)

const (
	// probeTimeout is the time that a path has to answer a probe. probePause is the time between
	// two probes of the spare path while the connection works.
	probeTimeout = 2 * time.Second
	probePause   = 30 * time.Second
	// probeQueued is the time after which a probe is in quic-go's queue.
	probeQueued = 10 * time.Millisecond
	// migratePause is the time that a silent connection stays on a path before it migrates again.
	migratePause = 1500 * time.Millisecond
)

// paths holds the two paths of a connection, each over one of the pool's two sockets. One path is
// in use, and the other is a spare. The spare path is probed in advance, because quic-go does not
// probe while the congestion window is full. The window is full when packets are lost that never
// pass.
type paths struct {
	probed   time.Time   // time of the last probe; only used by watch
	begun    time.Time   // time of the last migration; only used by watch
	busy     atomic.Bool // guards the following fields
	ready    atomic.Bool // the spare path has reached the peer
	migrated atomic.Bool // the connection has migrated since the last measurement

	socket      atomic.Int32 // index of the socket in use
	used, spare *quic.Path   // used is nil until the first migration
}

// prepare probes the spare path of a connection, so that the connection can migrate at once. It
// does so only after a check has shown that the connection works. The caller holds the lock of the
// pool.
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
// uses the host's current address, and is a new flow to NATs and firewalls. Both ends start again
// with the smallest packet size. The streams of the connection only notice a pause.
//
// If the spare path is not ready, migrate resets the congestion state on the current path, because
// quic-go would retransmit at ever longer intervals. It cannot do so on a connection that has never
// migrated, and probes the spare path of such a connection now.
//
// The path that becomes the spare one is probed at once. The peer may have got packets over both
// paths before it could validate one, and then has no connection ID left for the second. The
// connection returns to the first path if it stays silent. The caller holds the lock of the pool.
func (p *Pool) migrate(l *quicLink) {
	p.withPaths(l, func() {
		x := &l.paths
		former := x.used
		switch {
		case x.ready.Swap(false) || former == nil && x.probe(l.Conn, p.quic[1-x.socket.Load()]):
			x.used, x.spare = x.spare, nil
			x.socket.Store(1 - x.socket.Load())
		case former == nil:
			return
		}
		// quic-go sends queued probes first when the congestion window opens, which Switch does.
		answered := make(chan bool, 1)
		p.busy.Go(func() { answered <- x.probe(l.Conn, p.quic[1-x.socket.Load()]) })
		time.Sleep(probeQueued)
		if x.used.Switch() == nil {
			if former != nil && former != x.used {
				_ = former.Close()
			}
			x.migrated.Store(true)
			_ = l.SendDatagram(nil) // the peer follows at the first packet that is not a probe
		}
		x.ready.Store(<-answered)
	})
}

// withPaths calls a function that has exclusive access to the paths of a connection. It does
// nothing if another function has access at the moment.
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

// watchNetwork moves connections to the host's new address when the host changes networks.
func (p *Pool) watchNetwork() {
	err := watchRoutes(p.ctx, p.follow)
	if err != nil {
		// Without it, connections migrate only after they have become silent.
		<-p.ctx.Done()
	}
}

// follow migrates the connections whose packets now have another source address. It replaces
// connections over TCP, because they cannot migrate.
func (p *Pool) follow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		source, err := sourceTo(c.at)
		if err != nil || source == c.source {
			continue // keep a connection while there is no route
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
