package upstream

import (
	"errors"
	"net"
	"net/netip"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/internal/sockdiag"
)

// Peer checks the owner of the socket that receives the datagrams of a connected UDP socket.
type Peer struct {
	owner         Owner
	elsewhere     bool // on another host, where the owner cannot be looked up
	local, remote netip.AddrPort
}

// NewPeer returns the peer at the other end of c.
func NewPeer(c *net.UDPConn, o Owner) *Peer {
	return &Peer{
		owner: o, elsewhere: !sockdiag.Here(c),
		local: c.LocalAddr().(*net.UDPAddr).AddrPort(), remote: c.RemoteAddr().(*net.UDPAddr).AddrPort(),
	}
}

// Check returns a *ForeignError if the next datagram would be received by another account. It
// returns nil if nobody would receive it, because the kernel reports that to the sender.
func (p *Peer) Check() error {
	if p.elsewhere {
		return nil
	}
	uid, err := caller.SenderUID(p.remote, p.local)
	switch {
	case errors.Is(err, caller.ErrGone):
		return nil
	case err != nil:
		return err
	}
	return p.owner.check(p.remote.String(), uid)
}
