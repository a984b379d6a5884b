// Package sockdiag looks up whose a socket of this host is, from the kernel (sock_diag(7)), and
// connects to listeners of accounts that may have them.
package sockdiag

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's structures, include/uapi/linux/inet_diag.h. Ports and addresses
// are in network order.
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
	// Message describes a socket of the kernel.
	Message struct {
		family, State, timer, retrans uint8
		id                            sockID
		expires, rqueue, wqueue       uint32
		UID, Inode                    uint32
	}
	// Found is a socket.
	Found struct {
		Message
		Cgroup uint64 // number of its control group, zero: not known
	}
)

const anyCookie = ^uint32(0)

// attrCgroup is the attribute that has a socket's control group, of version 2, by its number:
// where the process was when it made the socket. Kernels before 5.9 do not have it.
const attrCgroup = 21 // INET_DIAG_CGROUP_ID

// diag is the one netlink socket that answers sock_diag(7) for this process. It is opened
// with the first lookup, in the network namespace of then.
var diag = struct {
	sync.Mutex
	fd int // -1: not open
}{fd: -1}

// ErrNone is that there is no such socket, in the network namespace of the first lookup.
var ErrNone = unix.ENOENT

// Lookup finds one socket of a protocol by its addresses, source first: of TCP those
// that the socket has.
func Lookup(protocol uint8, source, destination netip.AddrPort) (Found, error) {
	req := newRequest(protocol, source, destination)
	var answer [512]byte // small, since it lies on the stack of whoever carries
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

// exchange sends a request and receives the answer. After an error the socket is another
// one, so that no answer is taken for that to a later request.
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

// parse reads the kernel's one answer.
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

// cgroupAmong is the control group among the attributes of a socket.
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

// cookie identifies one socket among all that there ever were.
type cookie [2]uint32

// Source is the socket's own address.
func (m Message) Source() netip.AddrPort { return m.address(m.id.src, m.id.sport) }

// Destination is the address of the socket's peer.
func (m Message) Destination() netip.AddrPort { return m.address(m.id.dst, m.id.dport) }

func (m Message) address(a [16]byte, port [2]byte) netip.AddrPort {
	ip := netip.AddrFrom16(a).Unmap()
	if m.family == unix.AF_INET {
		ip = netip.AddrFrom4([4]byte(a[:4]))
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(port[:]))
}
