package upstream

import (
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/florete/florete/agent/forward/caller"
)

// Peer checks who takes the datagrams of a connected UDP socket. It must be closed.
type Peer struct {
	owner         Owner
	mu            sync.Mutex
	senders       *caller.Senders // nil: the upstream is not on this host
	local, remote netip.AddrPort
}

// NewPeer is who is at the other end of c.
func NewPeer(c *net.UDPConn, o Owner) (*Peer, error) {
	if !here(c) {
		return &Peer{}, nil
	}
	senders, err := caller.OpenSenders()
	if err != nil {
		return nil, err
	}
	return &Peer{
		owner: o, senders: senders,
		local: c.LocalAddr().(*net.UDPAddr).AddrPort(), remote: c.RemoteAddr().(*net.UDPAddr).AddrPort(),
	}, nil
}

// Check returns a ForeignError when the next datagram would come to another account.
// Where nobody would get it there is no error: the kernel says so to who sends it.
func (p *Peer) Check() error {
	if p.senders == nil {
		return nil
	}
	p.mu.Lock()
	uid, err := p.senders.UID(p.remote, p.local)
	p.mu.Unlock()
	switch {
	case errors.Is(err, caller.ErrGone):
		return nil
	case err != nil:
		return err
	}
	return p.owner.check(p.remote.String(), uid)
}

// Close ends it.
func (p *Peer) Close() {
	if p.senders != nil {
		p.senders.Close()
	}
}
