package upstream

import (
	"errors"
	"net"
	"net/netip"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/internal/sockdiag"
)

// Peer is the program to which a connected UDP socket sends its datagrams. Its method Check finds
// out whether an allowed account runs the program.
type Peer struct {
	owner         Owner
	elsewhere     bool // the peer is on another host, where the owner cannot be looked up
	local, remote netip.AddrPort
}

// NewPeer returns the program to which the connected UDP socket c sends. The Owner says which
// accounts may run it.
func NewPeer(c *net.UDPConn, o Owner) *Peer {
	return &Peer{
		owner: o, elsewhere: !sockdiag.Here(c),
		local: c.LocalAddr().(*net.UDPAddr).AddrPort(), remote: c.RemoteAddr().(*net.UDPAddr).AddrPort(),
	}
}

// Check returns a *ForeignError if the next datagram would reach a process of an account that is
// not allowed. It returns nil if the receiver is on another host, where accounts cannot be checked.
// It also returns nil if no process would receive the datagram.
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
