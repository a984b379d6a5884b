package caller

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrGone says that no process holds the other end any more: it was closed before
// its owner could be looked up. The kernel reports uid 0 for such a socket, which
// must never pass for root.
var ErrGone = errors.New("the caller has closed its end")

// UID is the owner of the local socket at the other end of c, from the kernel
// (sock_diag(7)).
func UID(c net.Conn) (uint32, error) {
	peer, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return 0, fmt.Errorf("caller: %w", err)
	}
	local, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return 0, fmt.Errorf("caller: %w", err)
	}
	m, err := query(peer, local)
	if errors.Is(err, unix.ENOENT) {
		return 0, ErrGone
	}
	if err != nil {
		return 0, fmt.Errorf("caller: socket %s to %s: %w", peer, local, err)
	}
	return m.owner(peer, local)
}

// The kernel's structures, include/uapi/linux/inet_diag.h. Ports and addresses
// are in network order.
type (
	sockID struct {
		sport, dport [2]byte
		src, dst     [16]byte
		iface        uint32
		cookie       [2]uint32
	}
	request struct {
		header                       unix.NlMsghdr
		family, protocol, extensions uint8
		_                            uint8
		states                       uint32
		id                           sockID
	}
	message struct {
		family, state, timer, retrans uint8
		id                            sockID
		expires, rqueue, wqueue       uint32
		uid, inode                    uint32
	}
)

const anyCookie = ^uint32(0)

// query asks for the socket whose own address is local and whose peer is remote.
func query(local, remote netip.AddrPort) (message, error) {
	req := request{family: unix.AF_INET, protocol: unix.IPPROTO_TCP, states: ^uint32(0)}
	req.header = unix.NlMsghdr{Len: uint32(unsafe.Sizeof(req)), Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST}
	if !local.Addr().Unmap().Is4() {
		req.family = unix.AF_INET6
	}
	binary.BigEndian.PutUint16(req.id.sport[:], local.Port())
	binary.BigEndian.PutUint16(req.id.dport[:], remote.Port())
	copy(req.id.src[:], local.Addr().Unmap().AsSlice())
	copy(req.id.dst[:], remote.Addr().Unmap().AsSlice())
	req.id.cookie = [2]uint32{anyCookie, anyCookie}

	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return message{}, err
	}
	defer unix.Close(s)
	out := (*[unsafe.Sizeof(req)]byte)(unsafe.Pointer(&req))[:]
	if err := unix.Sendto(s, out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return message{}, err
	}
	// The kernel has answered when Sendto returns.
	var in [4096]byte
	n, _, err := unix.Recvfrom(s, in[:], unix.MSG_DONTWAIT)
	if err != nil {
		return message{}, err
	}
	return parse(in[:n])
}

// parse reads the kernel's one answer.
func parse(b []byte) (m message, err error) {
	if len(b) < unix.NLMSG_HDRLEN {
		return m, fmt.Errorf("answer of %d bytes", len(b))
	}
	body := b[unix.NLMSG_HDRLEN:]
	switch kind := binary.NativeEndian.Uint16(b[4:]); {
	case kind == unix.NLMSG_ERROR && len(body) >= 4:
		return m, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
	case kind == unix.SOCK_DIAG_BY_FAMILY && len(body) >= int(unsafe.Sizeof(m)):
		copy((*[unsafe.Sizeof(m)]byte)(unsafe.Pointer(&m))[:], body)
		return m, nil
	default:
		return m, fmt.Errorf("answer of kind %d with %d bytes", kind, len(body))
	}
}

// owner checks that the answer is about the socket asked for, since the kernel
// falls back to listeners, and that a process still holds it.
func (m message) owner(local, remote netip.AddrPort) (uint32, error) {
	src, dst := m.address(m.id.src, m.id.sport), m.address(m.id.dst, m.id.dport)
	if src != unmap(local) || dst != unmap(remote) || m.inode == 0 {
		return 0, ErrGone
	}
	return m.uid, nil
}

func (m message) address(a [16]byte, port [2]byte) netip.AddrPort {
	ip := netip.AddrFrom16(a).Unmap()
	if m.family == unix.AF_INET {
		ip = netip.AddrFrom4([4]byte(a[:4]))
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(port[:]))
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
