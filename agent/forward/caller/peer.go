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
	UID uint32   // when it connected
	fd  *os.File // pidfd_open(2)
}

// NewPeer finds the process that connected, and holds on to it until Close: while Process has no
// error, no other has its number. ErrGone says that it has ended.
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

// find reads what the kernel noted when the process connected. Before Linux 6.5 it does not
// have a pidfd then: another process may have the number by now, which Process lets pass
// where that has the same account.
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

// Process is the peer as it is now. The error is ErrGone once it has ended.
func (p *Peer) Process() (Process, error) {
	uid, group, err := readProcess(p.PID)
	switch {
	case p.ended():
		return Process{}, ErrGone // what was read may be of another
	case err != nil:
		return Process{}, fmt.Errorf("process %d of the caller: %w", p.PID, err)
	case uid != p.UID:
		return Process{}, fmt.Errorf("process %d of the caller: connected as uid %d, is uid %d now", p.PID, p.UID, uid)
	}
	return Process{uid, cgroupNumber(group)}, nil
}

// Close lets go of the process, which has ended for Process from then on.
func (p *Peer) Close() { p.fd.Close() }

// ended reports whether the process has, or may have.
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

// readProcess is the effective uid of a process, and its control group of version 2.
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
	each := strings.Fields(ids) // real, effective, saved, of the file system
	if len(each) != 4 {
		return 0, "", fmt.Errorf("%s/status: Uid:%q", dir, ids)
	}
	n, err := strconv.ParseUint(each[1], 10, 32)
	return uint32(n), group, err
}

// lineOf is what follows a prefix in the file's line that has it.
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
