package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/caller"
)

// attempts bounds how often a service that is being started again is tried.
const attempts = 3

// Dial connects to what a service of this host is published from: TCP, UDP or a Unix
// socket. The error is a ForeignError when somebody else is there. UDP has no connections:
// a Peer checks each datagram.
func Dial(ctx context.Context, p florete.Published, o Owner) (conn net.Conn, err error) {
	if path, ok := strings.CutPrefix(p.Upstream, "unix:"); ok {
		return dialUnix(ctx, path, o)
	}
	if p.Protocol == florete.UDP {
		return new(net.Dialer).DialContext(ctx, "udp", p.Upstream)
	}
	for range attempts {
		if conn, err = dialTCP(ctx, p.Upstream, o); !errors.Is(err, errReplaced) {
			break
		}
	}
	return conn, err
}

// errReplaced says that the listener was another one before than after.
var errReplaced = errors.New("nobody listened there all the time, in this network namespace")

func dialTCP(ctx context.Context, addr string, o Owner) (net.Conn, error) {
	var mu sync.Mutex
	before := map[netip.AddrPort]caller.Listener{}
	dialer := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if l, err := caller.FindListener(at); err == nil {
			mu.Lock()
			defer mu.Unlock()
			before[at] = l
		}
		return nil
	}}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil || !here(conn) {
		return conn, err
	}
	at := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	mu.Lock()
	first, found := before[at]
	mu.Unlock()
	after, err := caller.FindListener(at)
	switch {
	case err != nil && !errors.Is(err, caller.ErrGone):
	case err != nil || !found || first != after:
		err = fmt.Errorf("upstream %s: %w", addr, errReplaced)
	default:
		err = o.check(addr, after.UID)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// here reports whether the other end of a connection is on this host: the kernel gives
// such a connection the address that it goes to.
func here(c net.Conn) bool {
	local, errLocal := netip.ParseAddrPort(c.LocalAddr().String())
	remote, errRemote := netip.ParseAddrPort(c.RemoteAddr().String())
	return errLocal != nil || errRemote != nil || remote.Addr().IsLoopback() || remote.Addr() == local.Addr()
}

// dialUnix checks whose the socket was when it began to listen, which the connection
// keeps.
func dialUnix(ctx context.Context, path string, o Owner) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err == nil {
		var peer *unix.Ucred
		if e := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
			err = e
		}
		if err == nil {
			err = o.check("unix:"+path, peer.Uid)
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
