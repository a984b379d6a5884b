package credentials

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/unixsock"
)

// request is a request of systemd for one credential. Each connection carries one request.
type request struct {
	unit, name string
	key        string    // unique for this connection
	begun      time.Time // start time of the process that connected, from which systemd's timeout runs
}

// parsePeer reads the request from the peer's address. It accepts a peer only if it is root,
// because any account can bind an abstract address.
func parsePeer(conn *net.UnixConn) (request, error) {
	peer, err := unixsock.Peer(conn)
	if err != nil {
		return request{}, fmt.Errorf("peer: %w", err)
	}
	address := conn.RemoteAddr().String()
	if peer.Uid != 0 {
		return request{}, fmt.Errorf("%q, uid %d: only root is answered", address, peer.Uid)
	}
	r, err := parse(address)
	r.begun = begun(int(peer.Pid))
	return r, err
}

// begun returns the start time of the process pid. If the start time cannot be read, begun returns
// the current time.
func begun(pid int) time.Time {
	const perSecond = 100 // USER_HZ, time(7)
	var stat procfs.ProcStat
	p, err := procfs.NewProc(pid)
	if err == nil {
		stat, err = p.Stat()
	}
	var up unix.Timespec
	now := time.Now()
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return now
	}
	return now.Add(time.Duration(stat.Starttime)*time.Second/perSecond - time.Duration(up.Nano()))
}

// parse parses the peer's address, which has the form "@<random>/unit/<unit>/<credential>".
func parse(address string) (request, error) {
	part := strings.Split(address, "/")
	if len(part) != 4 || len(part[0]) < 2 || part[0][0] != '@' || part[1] != "unit" || part[2] == "" || part[3] == "" {
		return request{}, fmt.Errorf("%q: not the address of a unit that loads a credential, want @<random>/unit/<unit>/<credential>", address)
	}
	return request{unit: part[2], name: part[3], key: stored + part[0][1:]}, nil
}

// gone reports whether the peer has closed the connection. It polls the socket for a hang-up and
// never sends data.
func gone(conn *net.UnixConn) bool {
	closed := false
	err := conns.Control(conn, func(fd int) error {
		p := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(p, 0)
		closed = p[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
		return err
	})
	return closed || err != nil && err != unix.EINTR
}

// systemdTimeoutStart asks systemd for the start timeout of a unit (TimeoutStartSec=). It returns
// zero for infinity.
func systemdTimeoutStart(ctx context.Context, unit string) (time.Duration, error) {
	conn, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return 0, fmt.Errorf("D-Bus: %w", err)
	}
	defer conn.Close()
	p, err := conn.GetServicePropertyContext(ctx, unit, "TimeoutStartUSec")
	if err != nil {
		return 0, err
	}
	usec, ok := p.Value.Value().(uint64)
	if !ok {
		return 0, fmt.Errorf("TimeoutStartUSec is %s", p.Value)
	}
	if usec > uint64(math.MaxInt64/time.Microsecond) {
		return 0, nil
	}
	return time.Duration(usec) * time.Microsecond, nil
}
