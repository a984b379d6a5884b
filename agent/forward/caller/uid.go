package caller

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/sockdiag"
)

// ErrGone means that no process holds the other end any more: it was closed before its owner could
// be looked up. The kernel reports uid 0 for such a socket, which must never be taken for root.
var ErrGone = errors.New("the caller has closed its end")

// FindProcess returns the owner of the local socket at the other end of c, from the kernel
// (sock_diag(7)).
func FindProcess(c *net.TCPConn) (Process, error) {
	peer, local := c.RemoteAddr().(*net.TCPAddr).AddrPort(), c.LocalAddr().(*net.TCPAddr).AddrPort()
	m, err := sockdiag.Lookup(unix.IPPROTO_TCP, peer, local)
	if err != nil {
		return Process{}, explain(err, peer, local)
	}
	// The kernel falls back to listeners.
	if m.Source() != unmap(peer) || m.Destination() != unmap(local) || m.Inode == 0 {
		return Process{}, ErrGone
	}
	// As long as c exists, no other socket can be connected from the same address. After the other
	// end has reset the connection, another user may have the address, while data can still be read
	// from c.
	if m.State == unix.BPF_TCP_SYN_SENT || closed(c) {
		return Process{}, ErrGone
	}
	return Process{m.UID, m.Cgroup}, nil
}

// closed reports whether the kernel no longer has a connection behind c.
func closed(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	var info *unix.TCPInfo
	if raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }) != nil {
		return true
	}
	return err != nil || info.State == unix.BPF_TCP_CLOSE
}

// SenderUID returns the owner of the UDP socket, connected or not, that has the address peer now
// and would receive datagrams from local. It returns ErrGone if the sender has closed its socket.
func SenderUID(peer, local netip.AddrPort) (uint32, error) {
	// For UDP, the kernel looks up the socket that a datagram from local would reach.
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
