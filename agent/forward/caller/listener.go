package caller

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// Listener is a socket of this host that takes connections. Two that are equal are the
// same socket: while it is there, no other gets what is sent to its address.
type Listener struct {
	UID    uint32 // its owner
	cookie cookie
}

// FindListener finds the listener of TCP that takes connections to an address of this
// host. ErrGone says that there is none in the forwarder's network namespace.
func FindListener(addr netip.AddrPort) (Listener, error) {
	anyone := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if !addr.Addr().Unmap().Is4() {
		anyone = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	m, err := lookup(unix.IPPROTO_TCP, addr, anyone)
	if err != nil {
		return Listener{}, explain(err, addr, anyone)
	}
	if m.state != unix.BPF_TCP_LISTEN || m.inode == 0 {
		return Listener{}, ErrGone
	}
	return Listener{m.uid, m.id.cookie}, nil
}
