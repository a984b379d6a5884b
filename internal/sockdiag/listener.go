package sockdiag

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/nss"
)

// Listener is a socket of this host that takes connections. Two that are equal are the
// same socket: while it is there, no other gets what is sent to its address.
type Listener struct {
	UID    uint32 // its owner
	cookie cookie
}

// FindListener finds the listener of TCP that takes connections to an address of this
// host. ErrNone says that there is none in this network namespace.
func FindListener(addr netip.AddrPort) (Listener, error) {
	anyone := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if !addr.Addr().Unmap().Is4() {
		anyone = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	m, err := Lookup(unix.IPPROTO_TCP, addr, anyone)
	if err != nil {
		return Listener{}, err
	}
	if m.State != unix.BPF_TCP_LISTEN || m.Inode == 0 {
		return Listener{}, ErrNone
	}
	return Listener{m.UID, m.id.cookie}, nil
}

// ErrReplaced is that the listener was another one before connecting than after.
var ErrReplaced = errors.New("nobody listened there all the time, in this network namespace")

// Dial connects over TCP. Where the other end is on this host, check is called with the account
// that listens there, before anything is sent. The owner is looked up before and after
// connecting: it is the same socket, so nobody else can have had the address between. control
// is called before connecting to each address; it may be nil.
func Dial(ctx context.Context, addr string, control func(at netip.AddrPort) error, check func(uid uint32) error) (net.Conn, error) {
	var mu sync.Mutex
	before := map[netip.AddrPort]Listener{}
	dialer := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil && control != nil {
			err = control(at)
		}
		if err != nil {
			return err
		}
		if l, err := FindListener(at); err == nil {
			mu.Lock()
			defer mu.Unlock()
			before[at] = l
		}
		return nil
	}}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil || !Here(conn) {
		return conn, err
	}
	at := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	mu.Lock()
	first, found := before[at]
	mu.Unlock()
	after, err := FindListener(at)
	switch {
	case err != nil && !errors.Is(err, ErrNone):
	case err != nil || !found || first != after:
		err = ErrReplaced
	default:
		err = check(after.UID)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// Here reports whether the other end of a connection is on this host: the kernel gives
// such a connection the address that it goes to.
func Here(c net.Conn) bool {
	local, errLocal := netip.ParseAddrPort(c.LocalAddr().String())
	remote, errRemote := netip.ParseAddrPort(c.RemoteAddr().String())
	return errLocal != nil || errRemote != nil || remote.Addr().IsLoopback() || remote.Addr() == local.Addr()
}

// Range is uids, both ends included.
type Range struct{ First, Last uint32 }

// SystemAccounts are accounts that nobody logs in with: static ones, as systemd and
// login.defs(5) have them, and those of DynamicUser=.
var SystemAccounts = []Range{{0, 999}, {61184, 65519}}

// System returns an error unless a uid is a system account, or that of this process. Any account
// may take a port while its server is down, and would get what is meant for that.
func System(uid uint32) error {
	if int64(uid) == int64(os.Geteuid()) || slices.ContainsFunc(SystemAccounts, func(r Range) bool { return r.First <= uid && uid <= r.Last }) {
		return nil
	}
	name := strconv.FormatUint(uint64(uid), 10)
	if u, err := nss.LookupID(int(uid)); err == nil {
		name = u.Username + ", uid " + name
	}
	return fmt.Errorf("an ordinary account (%s) listens there, want root or a system account: run the server as one, or name its Unix socket", name)
}
