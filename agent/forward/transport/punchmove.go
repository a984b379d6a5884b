package transport

import (
	"time"

	"github.com/florete/florete/agent/forward/wire"
)

const (
	// After a change of the network, this host asks the relay rejoins times, with pauses of
	// rejoinPause, to introduce it to the other host anew. It asks several times because the
	// connection to the relay moves to the new network at the same time.
	rejoins     = 4
	rejoinPause = 250 * time.Millisecond
	// findPause is the time between two questions to a relay for the address of a silent host.
	findPause = time.Second
)

// punchAnew permits attempts to connect directly at once, because the network has changed. The
// caller holds the lock.
func (p *Pool) punchAnew() {
	for _, x := range p.punched {
		x.next, x.failures = time.Time{}, 0
	}
}

// rejoin keeps a direct connection working after this host has changed networks. It asks the relay
// to tell the other host the new address of this host, so that the other host's NAT lets in packets
// from there. If the connection to the relay has moved to the pool's other socket, further
// connections over the direct path use that socket too. The caller holds the lock.
func (p *Pool) rejoin(c *conn) {
	x := c.endpoint.punched
	if x == nil || !c.busy() || p.ctx.Err() != nil {
		return
	}
	p.busy.Go(func() {
		for range rejoins {
			if at, socket, err := p.meet(x.via); err == nil {
				p.mu.Lock()
				if x.at == at {
					x.socket = socket
				}
				p.mu.Unlock()
			}
			select {
			case <-time.After(rejoinPause):
			case <-c.Context().Done():
				return
			}
		}
	})
}

// findTarget finds out whether the target of a silent direct connection has moved to another
// network. It asks the relay for the address of the target's host, until the connection works again
// or would end anyway. If the address has changed, the connection cannot continue, because only the
// side that has made a connection can move it (RFC 9000, section 9). findTarget then closes the
// connection, so that its streams end with an error, and permits a new direct connection at once.
// The caller holds the lock.
func (p *Pool) findTarget(c *conn) {
	x := c.endpoint.punched
	if x == nil || c.finding || p.ctx.Err() != nil {
		return
	}
	c.finding = true
	via := x.via
	p.busy.Go(func() {
		for until := time.Now().Add(quicIdleTimeout); p.stillSilent(c) && time.Now().Before(until); {
			if at, _, err := p.meet(via); err == nil && at != c.at && p.stillSilent(c) {
				p.mu.Lock()
				x.next, x.failures = time.Time{}, 0
				p.mu.Unlock()
				closeWith(c.link, wire.Reset)
				return
			}
			select {
			case <-time.After(findPause):
			case <-p.ctx.Done():
				return
			}
		}
	})
}

// stillSilent reports whether a direct connection is silent, or was when it ended. After a
// connection has worked again, findTarget may run anew.
func (p *Pool) stillSilent(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.finding = c.doubt == silent
	return c.finding
}
