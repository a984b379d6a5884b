package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/sockdiag"
	"github.com/florete/florete/internal/unixsock"
)

// attempts is the maximum number of attempts to connect to a service that is being restarted.
const attempts = 3

// Dial connects to the upstream of a published service over TCP, UDP or a Unix socket. If the
// socket of the upstream belongs to an account that o does not allow, Dial returns a *ForeignError.
// With UDP, Dial does not check the owner, because UDP has no connections. Use a Peer to check it
// for each datagram.
func Dial(ctx context.Context, p document.Published, o Owner) (conn net.Conn, err error) {
	if path, ok := strings.CutPrefix(p.Upstream, "unix:"); ok {
		return dialUnix(ctx, path, o)
	}
	if p.Protocol == document.UDP {
		return new(net.Dialer).DialContext(ctx, "udp", p.Upstream)
	}
	for range attempts {
		if conn, err = dialTCP(ctx, p.Upstream, o); !errors.Is(err, sockdiag.ErrReplaced) {
			break
		}
	}
	return conn, err
}

func dialTCP(ctx context.Context, addr string, o Owner) (net.Conn, error) {
	conn, err := sockdiag.Dial(ctx, addr, nil, func(uid uint32) error { return o.check(addr, uid) })
	if errors.Is(err, sockdiag.ErrReplaced) {
		err = fmt.Errorf("upstream %s: %w", addr, err)
	}
	return conn, err
}

// dialUnix connects to a Unix socket and checks its owner. The kernel records the owner in the
// connection, as it was when the socket began to listen.
func dialUnix(ctx context.Context, path string, o Owner) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	peer, err := unixsock.Peer(conn.(*net.UnixConn))
	if err == nil {
		err = o.check("unix:"+path, peer.Uid)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
