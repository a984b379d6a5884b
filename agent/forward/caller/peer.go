package caller

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/conns"
)

// Peer is a process that has connected to a Unix socket of this program. A Peer holds a pidfd, so
// that a later process with the same PID is not mistaken for it.
type Peer struct {
	PID int
	UID uint32   // uid when it connected
	fd  *os.File // from pidfd_open(2)
}

// NewPeer returns the process at the other end of a Unix socket. It returns ErrGone if the process
// has ended. The caller must close the Peer.
func NewPeer(conn syscall.Conn) (*Peer, error) {
	p := &Peer{}
	err := conns.Control(conn, p.find)
	if errors.Is(err, unix.ESRCH) {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("process of the caller: %w", err)
	}
	return p, nil
}

// find reads the credentials that the kernel recorded when the process connected. Before Linux 6.5
// the credentials do not include a pidfd, so another process may have the same PID by now. Process
// accepts such a process only if it has the same account.
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

// Process returns the account and the control group of the peer. It returns ErrGone if the peer has
// ended, and another error if its account has changed since it connected.
func (p *Peer) Process() (Process, error) {
	uid, group, err := readProcess(p.PID)
	switch {
	case p.ended():
		return Process{}, ErrGone // another process may have the PID by now
	case err != nil:
		return Process{}, fmt.Errorf("process %d of the caller: %w", p.PID, err)
	case uid != p.UID:
		return Process{}, fmt.Errorf("process %d of the caller: connected as uid %d, is uid %d now", p.PID, p.UID, uid)
	}
	return Process{uid, cgroupNumber(group)}, nil
}

// Close releases the reference to the process. After Close, Process returns ErrGone.
func (p *Peer) Close() { p.fd.Close() }

// ended reports whether the process has ended. It also returns true if this cannot be determined.
func (p *Peer) ended() bool {
	n := 0
	err := conns.Control(p.fd, func(fd int) (err error) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err = unix.Poll(poll, 0)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll(poll, 0)
		}
		return err
	})
	return n != 0 || err != nil
}

// readProcess returns the effective uid and the control group (version 2) of the process pid.
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

// lineOf finds the line of a file that begins with prefix. It returns the rest of the line.
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
