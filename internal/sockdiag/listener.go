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

// Listener identifies a listening socket of this host. Equal values identify the same socket. While
// the socket exists, no other process can receive connections to its address.
type Listener struct {
	UID    uint32 // owner of the socket
	cookie cookie
}

// FindListener finds the TCP socket that accepts connections to an address of this host. It returns
// ErrNone if there is no such socket in this network namespace.
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

// ErrReplaced is the error of Dial if the listening socket was not the same before and after the
// connection was made. Another process may then have accepted the connection.
var ErrReplaced = errors.New("nobody listened there all the time, in this network namespace")

// Dial connects to a server over TCP. If the server is on this host, Dial calls check with the uid
// of the account that owns the listening socket, and returns an error if check does. Dial looks up
// the socket before and after connecting, and returns ErrReplaced unless both are the same. Another
// process may otherwise have accepted the connection. If control is not nil, Dial calls it before
// each attempt to connect to an address.
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

// Here reports whether the other end of a connection is on this host. It also returns true if the
// connection has no IP addresses.
func Here(c net.Conn) bool {
	local, errLocal := netip.ParseAddrPort(c.LocalAddr().String())
	remote, errRemote := netip.ParseAddrPort(c.RemoteAddr().String())
	return errLocal != nil || errRemote != nil || remote.Addr().IsLoopback() || remote.Addr() == local.Addr()
}

// Range is a range of uids, which includes First and Last.
type Range struct{ First, Last uint32 }

// SystemAccounts lists the uids of accounts with which nobody logs in. These are static system
// accounts, as defined in systemd and login.defs(5), and the accounts of units with DynamicUser=.
var SystemAccounts = []Range{{0, 999}, {61184, 65519}}

// System returns an error unless uid belongs to a system account or to the account of this process.
// It protects connections to a server that is down, because any login account could listen on the
// server's port meanwhile.
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
