package handover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// starterEnv is the environment variable with the number of the file that leads to the process
// which started this one.
const starterEnv = "FLORETE_HANDOVER"

// Reload starts a process with args that takes over from the running one, and returns when the new
// process serves. It implements ExecReload= of the unit: systemd runs it with all restrictions of
// the unit, makes the new process the main one when it is ready, and keeps the old process in the
// same cgroup until it ends. On error nothing has changed, unless the new process ends after it
// became the main one; systemd then starts another.
func Reload(ctx context.Context, args []string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket pair: %w", err)
	}
	near, far := os.NewFile(uintptr(pair[0]), "starter"), os.NewFile(uintptr(pair[1]), "started")
	c, err := net.FileConn(near)
	near.Close()
	if err != nil {
		far.Close()
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	program, err := os.Executable()
	if err != nil {
		far.Close()
		return err
	}
	cmd := exec.Command(program, args...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{far}
	cmd.Env = append(os.Environ(), starterEnv+"=3")
	// Make it a child of systemd from the beginning, so that systemd notices its end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_PARENT}
	err = cmd.Start()
	far.Close()
	if err != nil {
		return fmt.Errorf("the next process: %w", err)
	}
	conn := c.(*net.UnixConn)
	if m, _, err := receive(conn); err != nil || !m.Ready {
		return errors.New("the next process has ended before it was ready: its log has the reason; the one before goes on")
	}
	if _, err := daemon.SdNotify(false, "MAINPID="+strconv.Itoa(cmd.Process.Pid)); err != nil {
		return fmt.Errorf("main process: %w", err)
	}
	if err := Barrier(); err != nil {
		return fmt.Errorf("main process: %w", err)
	}
	if err := send(conn, message{Yours: true}); err != nil {
		return fmt.Errorf("the next process: %w", err)
	}
	if m, _, err := receive(conn); err != nil || !m.Yours {
		return errors.New("the next process has ended before it served: its log has the reason")
	}
	return nil
}

// Starter is the process that started this one to take over.
type Starter struct{ conn *net.UnixConn }

// Started returns the process that started this one to take over, or nil if there is none.
func Started() (*Starter, error) {
	if os.Getenv(starterEnv) == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(os.Getenv(starterEnv))
	if err != nil {
		return nil, fmt.Errorf("$%s: %w", starterEnv, err)
	}
	os.Unsetenv(starterEnv)
	f := os.NewFile(uintptr(fd), "starter")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("$%s: %w", starterEnv, err)
	}
	return &Starter{c.(*net.UnixConn)}, nil
}

// Ready reports that this process can take over, and waits until it is the main process.
func (s *Starter) Ready() error {
	if err := send(s.conn, message{Ready: true}); err != nil {
		return fmt.Errorf("who started this process has ended: %w", err)
	}
	if m, _, err := receive(s.conn); err != nil || !m.Yours {
		return errors.New("who started this process has ended")
	}
	return nil
}

// Serving reports that this process has taken over.
func (s *Starter) Serving() {
	_ = send(s.conn, message{Yours: true}) // the starter may have ended
	s.conn.Close()
}
