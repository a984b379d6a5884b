package upstream

import (
	"errors"
	"net"
	"net/netip"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/internal/sockdiag"
)

// Peer checks who takes the datagrams of a connected UDP socket.
type Peer struct {
	owner         Owner
	elsewhere     bool // on another host: nobody to look up
	local, remote netip.AddrPort
}

// NewPeer is who is at the other end of c.
func NewPeer(c *net.UDPConn, o Owner) *Peer {
	return &Peer{
		owner: o, elsewhere: !sockdiag.Here(c),
		local: c.LocalAddr().(*net.UDPAddr).AddrPort(), remote: c.RemoteAddr().(*net.UDPAddr).AddrPort(),
	}
}

// Check returns a ForeignError when the next datagram would come to another account.
// Where nobody would get it there is no error: the kernel reports that to the sender.
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
