package caller

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Peer is the process that connected over a Unix socket.
type Peer struct {
	PID int
	UID uint32   // uid when it connected
	fd  *os.File // pidfd_open(2)
}

// NewPeer finds the process that connected and holds a reference to it until Close. As long as
// Process returns no error, no other process has its PID. The error is ErrGone if the process has
// ended.
func NewPeer(conn syscall.Conn) (*Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := &Peer{}
	if e := raw.Control(func(fd uintptr) { err = p.find(int(fd)) }); e != nil {
		err = e
	}
	if errors.Is(err, unix.ESRCH) {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("process of the caller: %w", err)
	}
	return p, nil
}

// find reads the credentials that the kernel recorded when the process connected. Before Linux 6.5
// they do not include a pidfd, and another process may have the PID by now; Process accepts it if
// it has the same account.
func (p *Peer) find(fd int) error {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return err
	}
	p.PID, p.UID = int(cred.Pid), cred.Uid
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if errors.Is(err, unix.ENOPROTOOPT) {
		pidfd, err = unix.PidfdOpen(p.PID, 0)
	}
	if err != nil {
		return err
	}
	p.fd = os.NewFile(uintptr(pidfd), "pidfd")
	return nil
}

// Process returns the current state of the peer. The error is ErrGone once it has ended.
func (p *Peer) Process() (Process, error) {
	uid, group, err := readProcess(p.PID)
	switch {
	case p.ended():
		return Process{}, ErrGone // the values may belong to another process
	case err != nil:
		return Process{}, fmt.Errorf("process %d of the caller: %w", p.PID, err)
	case uid != p.UID:
		return Process{}, fmt.Errorf("process %d of the caller: connected as uid %d, is uid %d now", p.PID, p.UID, uid)
	}
	return Process{uid, cgroupNumber(group)}, nil
}

// Close releases the process. After that, Process returns ErrGone.
func (p *Peer) Close() { p.fd.Close() }

// ended reports whether the process has ended, or may have ended.
func (p *Peer) ended() bool {
	raw, err := p.fd.SyscallConn()
	if err != nil {
		return true
	}
	gone := true
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll(poll, 0)
		}
		gone = n != 0 || err != nil
	})
	return gone || err != nil
}

// readProcess returns the effective uid of a process and its control group (version 2).
func readProcess(pid int) (uid uint32, group string, err error) {
	dir := "/proc/" + strconv.Itoa(pid)
	ids, err := lineOf(dir+"/status", "Uid:")
	if err != nil {
		return 0, "", err
	}
	group, err = lineOf(dir+"/cgroup", "0::")
	if err != nil {
		return 0, "", err
	}
	each := strings.Fields(ids) // real, effective, saved, file system
	if len(each) != 4 {
		return 0, "", fmt.Errorf("%s/status: Uid:%q", dir, ids)
	}
	n, err := strconv.ParseUint(each[1], 10, 32)
	return uint32(n), group, err
}

// lineOf returns the rest of the line of a file that begins with prefix.
func lineOf(file, prefix string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSuffix(rest, "\n"), nil
		}
	}
	return "", fmt.Errorf("%s: no line %q", file, prefix)
}
