package transport

import "time"

const (
	// After a change of the network, this host asks the relay rejoins times, with pauses of
	// rejoinPause, to introduce it to the other host anew. It asks several times because the
	// connection to the relay moves to the new network at the same time.
	rejoins     = 4
	rejoinPause = 250 * time.Millisecond
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
