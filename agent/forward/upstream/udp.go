package upstream

import (
	"errors"
	"net"
	"net/netip"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/internal/sockdiag"
)

// Peer checks which account owns the socket that receives the datagrams of a connected UDP socket.
type Peer struct {
	owner         Owner
	elsewhere     bool // the peer is on another host, where the owner cannot be looked up
	local, remote netip.AddrPort
}

// NewPeer returns the peer of a connected UDP socket. The argument o describes the accounts that
// may own the peer's socket.
func NewPeer(c *net.UDPConn, o Owner) *Peer {
	return &Peer{
		owner: o, elsewhere: !sockdiag.Here(c),
		local: c.LocalAddr().(*net.UDPAddr).AddrPort(), remote: c.RemoteAddr().(*net.UDPAddr).AddrPort(),
	}
}

// Check returns a *ForeignError if an account that is not allowed would receive the next datagram.
// It returns nil if no process would receive the datagram, because the kernel reports this to the
// sender.
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
