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

// starterEnv is the environment variable through which a new process finds the process that started
// it. It contains the number of an open file, which is a connection to that process.
const starterEnv = "FLORETE_HANDOVER"

// Reload replaces the running forwarder by a new process, which it starts with the given arguments.
// It returns when the new process serves. Reload runs as ExecReload= of the forwarder's unit, so
// the new process has all restrictions of the unit. When the new process is ready, systemd makes it
// the main process of the unit. The old process stays in the unit's control group until it ends.
//
// If Reload returns an error, the old process normally continues to serve. Only if the new process
// ended after it had become the main process, systemd starts the forwarder again.
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
	// Make the new process a child of systemd from the beginning, so that systemd notices when it
	// ends.
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

// Starter is the connection to the Reload command that started this process for a handover.
type Starter struct{ conn *net.UnixConn }

// Started returns the connection to the Reload command that started this process. It returns nil
// without an error if the process was started in another way.
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

// Ready tells the starter that this process is ready to take over. It returns when systemd has made
// this process the main process of the unit. It returns an error if the starter has ended.
func (s *Starter) Ready() error {
	if err := send(s.conn, message{Ready: true}); err != nil {
		return fmt.Errorf("who started this process has ended: %w", err)
	}
	if m, _, err := receive(s.conn); err != nil || !m.Yours {
		return errors.New("who started this process has ended")
	}
	return nil
}

// Serving tells the starter that this process has taken over.
func (s *Starter) Serving() {
	_ = send(s.conn, message{Yours: true}) // the starter may have ended
	s.conn.Close()
}
