package caller

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/sockdiag"
)

// ErrGone reports that the process at the other end has closed its socket, so that its account
// cannot be found. The kernel reports uid 0 for such a socket. This uid must never be mistaken for
// root's.
var ErrGone = errors.New("the caller has closed its end")

// FindProcess returns the process at the other end of a TCP connection within this host. It asks
// the kernel through sock_diag(7). If the process has closed its end, FindProcess returns ErrGone.
func FindProcess(c *net.TCPConn) (Process, error) {
	peer, local := c.RemoteAddr().(*net.TCPAddr).AddrPort(), c.LocalAddr().(*net.TCPAddr).AddrPort()
	m, err := sockdiag.Lookup(unix.IPPROTO_TCP, peer, local)
	if err != nil {
		return Process{}, explain(err, peer, local)
	}
	// If there is no such connection, the kernel returns a listener instead.
	if m.Source() != unmap(peer) || m.Destination() != unmap(local) || m.Inode == 0 {
		return Process{}, ErrGone
	}
	// As long as c exists, no other socket can connect from the same address. This ends when the
	// other end resets the connection. A socket of another user may then have the address, while
	// data can still be read from c.
	if m.State == unix.BPF_TCP_SYN_SENT || closed(c) {
		return Process{}, ErrGone
	}
	return Process{m.UID, m.Cgroup}, nil
}

// closed reports whether the kernel no longer has a connection for c.
func closed(c *net.TCPConn) bool {
	var info *unix.TCPInfo
	err := conns.Control(c, func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	})
	return err != nil || info.State == unix.BPF_TCP_CLOSE
}

// SenderUID returns the uid of the process that sent a datagram from the address peer to this
// program's socket at the address local. It asks the kernel which UDP socket would receive an
// answer. If there is no such socket, SenderUID returns ErrGone.
func SenderUID(peer, local netip.AddrPort) (uint32, error) {
	// For UDP, the kernel finds the socket that would receive a datagram from local.
	m, err := sockdiag.Lookup(unix.IPPROTO_UDP, local, peer)
	if err != nil {
		return 0, explain(err, peer, local)
	}
	src, want := m.Source(), unmap(peer)
	if src.Port() != want.Port() || !src.Addr().IsUnspecified() && src != want || m.Inode == 0 {
		return 0, ErrGone
	}
	return m.UID, nil
}

func explain(err error, peer, local netip.AddrPort) error {
	if errors.Is(err, sockdiag.ErrNone) {
		return ErrGone
	}
	return fmt.Errorf("caller: socket %s to %s: %w", peer, local, err)
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
