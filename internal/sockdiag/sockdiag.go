// Package sockdiag finds the owners of sockets on this host, with sock_diag(7) of the kernel. It
// also connects to local servers, and first checks that an allowed account owns the server's
// socket.
package sockdiag

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Structures of the kernel (include/uapi/linux/inet_diag.h). Ports and addresses are in network
// byte order.
type (
	sockID struct {
		sport, dport [2]byte
		src, dst     [16]byte
		iface        uint32
		cookie       cookie
	}
	request struct {
		header                       unix.NlMsghdr
		family, protocol, extensions uint8
		_                            uint8
		states                       uint32
		id                           sockID
	}
	// Message is the kernel's description of a socket.
	Message struct {
		family, State, timer, retrans uint8
		id                            sockID
		expires, rqueue, wqueue       uint32
		UID, Inode                    uint32
	}
	// Found is a socket that Lookup found.
	Found struct {
		Message
		Cgroup uint64 // ID of the control group, zero if not known
	}
)

const anyCookie = ^uint32(0)

// attrCgroup is the type of the attribute with the ID of a socket's control group (version 2). The
// process was in this group when it created the socket. The attribute is missing before Linux 5.9.
const attrCgroup = 21 // INET_DIAG_CGROUP_ID

// diag is the netlink socket with which this process uses sock_diag(7). The first lookup opens it,
// and all later lookups use the network namespace of this first lookup.
var diag = struct {
	sync.Mutex
	fd int // -1: not open
}{fd: -1}

// ErrNone is the error of a lookup that finds no socket. Lookups find only sockets in the network
// namespace in which the process made its first lookup.
var ErrNone = unix.ENOENT

// Lookup finds the socket of a protocol, such as unix.IPPROTO_TCP, that has the given addresses.
// For TCP, source is the address of the socket itself, and destination that of its peer. Lookup
// returns ErrNone if there is no such socket.
func Lookup(protocol uint8, source, destination netip.AddrPort) (Found, error) {
	req := newRequest(protocol, source, destination)
	var answer [512]byte // small, because it is on the stacks of goroutines that forward bytes
	n, err := exchange((*[unsafe.Sizeof(req)]byte)(unsafe.Pointer(&req))[:], answer[:])
	if err != nil {
		return Found{}, err
	}
	return parse(answer[:n])
}

func newRequest(protocol uint8, source, destination netip.AddrPort) request {
	req := request{family: unix.AF_INET, protocol: protocol, states: ^uint32(0)}
	req.header = unix.NlMsghdr{Len: uint32(unsafe.Sizeof(req)), Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST}
	if !source.Addr().Unmap().Is4() {
		req.family = unix.AF_INET6
	}
	binary.BigEndian.PutUint16(req.id.sport[:], source.Port())
	binary.BigEndian.PutUint16(req.id.dport[:], destination.Port())
	copy(req.id.src[:], source.Addr().Unmap().AsSlice())
	copy(req.id.dst[:], destination.Addr().Unmap().AsSlice())
	req.id.cookie = cookie{anyCookie, anyCookie}

	return req
}

// exchange sends a request to the kernel and receives the answer. After an error, the next call
// opens a new netlink socket, so that it does not receive a late answer to an earlier request.
func exchange(request, answer []byte) (n int, err error) {
	diag.Lock()
	defer diag.Unlock()
	if diag.fd < 0 {
		if diag.fd, err = openDiag(); err != nil {
			return 0, err
		}
	}
	if _, err = unix.Write(diag.fd, request); err == nil {
		// The kernel has answered when Write returns.
		n, _, err = unix.Recvfrom(diag.fd, answer, unix.MSG_DONTWAIT)
	}
	if err != nil {
		unix.Close(diag.fd)
		diag.fd = -1
	}
	return n, err
}

func openDiag() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// parse decodes the kernel's answer to a lookup.
func parse(b []byte) (m Found, err error) {
	if len(b) < unix.NLMSG_HDRLEN {
		return m, fmt.Errorf("answer of %d bytes", len(b))
	}
	body := b[unix.NLMSG_HDRLEN:]
	switch kind := binary.NativeEndian.Uint16(b[4:]); {
	case kind == unix.NLMSG_ERROR && len(body) >= 4:
		return m, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
	case kind == unix.SOCK_DIAG_BY_FAMILY && len(body) >= int(unsafe.Sizeof(m.Message)):
		n := copy((*[unsafe.Sizeof(m.Message)]byte)(unsafe.Pointer(&m.Message))[:], body)
		m.Cgroup = cgroupAmong(body[n:])
		return m, nil
	default:
		return m, fmt.Errorf("answer of kind %d with %d bytes", kind, len(body))
	}
}

// cgroupAmong returns the ID of the control group in the attributes of a socket. It returns zero if
// the attributes do not contain it.
func cgroupAmong(attributes []byte) uint64 {
	for len(attributes) >= unix.SizeofRtAttr {
		length := int(binary.NativeEndian.Uint16(attributes))
		if length < unix.SizeofRtAttr || length > len(attributes) {
			return 0
		}
		value := attributes[unix.SizeofRtAttr:length]
		if binary.NativeEndian.Uint16(attributes[2:]) == attrCgroup && len(value) == 8 {
			return binary.NativeEndian.Uint64(value)
		}
		attributes = attributes[min(len(attributes), (length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1)):]
	}
	return 0
}

// cookie identifies a socket. No other socket ever has the same cookie, even after the socket was
// closed.
type cookie [2]uint32

// Source returns the address of the socket itself.
func (m Message) Source() netip.AddrPort { return m.address(m.id.src, m.id.sport) }

// Destination returns the address of the socket's peer.
func (m Message) Destination() netip.AddrPort { return m.address(m.id.dst, m.id.dport) }

func (m Message) address(a [16]byte, port [2]byte) netip.AddrPort {
	ip := netip.AddrFrom16(a).Unmap()
	if m.family == unix.AF_INET {
		ip = netip.AddrFrom4([4]byte(a[:4]))
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(port[:]))
}
