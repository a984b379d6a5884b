package caller_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/tests/kit/agenttest"
)

// connectEnv makes this test binary connect to a Unix socket, and then follow the commands on its
// standard input.
const connectEnv = "FLORETE_TEST_CONNECT"

func TestMain(m *testing.M) {
	if socket := os.Getenv(connectEnv); socket != "" {
		if err := connected(socket); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	agenttest.Main(m)
}

// connected connects, and leaves the connection to a process that continues or changes its account.
func connected(socket string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	var command string
	if _, err := fmt.Scanln(&command); err != nil {
		return nil // the test is over
	}
	if command == "setuid" {
		if err := syscall.Setuid(64999); err != nil {
			return err
		}
		fmt.Println("done")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	file, err := conn.(*net.UnixConn).File()
	if err != nil {
		return err
	}
	left := exec.Command("cat")
	left.Stdin, left.ExtraFiles = os.Stdin, []*os.File{file}
	return left.Start()
}

// client is a process with a connection.
type client struct {
	*exec.Cmd
	*caller.Peer
	stdin  io.Writer
	stdout io.Reader
}

// start starts a client, in a control group unless group is nil.
func start(t *testing.T, group *os.File) client {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	cmd, err := agenttest.Self(0, group, connectEnv+"="+ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	peer, err := caller.NewPeer(conn.(*net.UnixConn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(peer.Close)
	return client{cmd, peer, in, out}
}

// end ends the process and leaves the connection to another one.
func (c client) end(t *testing.T) {
	t.Helper()
	fmt.Fprintln(c.stdin, "end")
	if state, err := c.Cmd.Process.Wait(); err != nil || !state.Success() {
		t.Fatal(state, err)
	}
}

func TestPeer(t *testing.T) {
	c := start(t, agenttest.Cgroup(t, "/system.slice/florete-test-peer.service"))
	p, err := c.Peer.Process()
	if err != nil || p.UID != 0 || p.Cgroup == 0 || c.PID != c.Cmd.Process.Pid {
		t.Errorf("%+v, %v, process %d, want root's %d in a control group", p, err, c.PID, c.Cmd.Process.Pid)
	}
	c.Close()
	if p, err := c.Peer.Process(); !errors.Is(err, caller.ErrGone) {
		t.Errorf("closed: %+v, %v, want ErrGone", p, err)
	}
}

// TestPeerThatEnded checks that a peer that ended is reported as gone, even if another process has
// its connection or its process ID.
func TestPeerThatEnded(t *testing.T) {
	agenttest.Root(t, "can start processes in control groups")
	c := start(t, nil)
	if _, err := c.Peer.Process(); err != nil {
		t.Fatal(err)
	}
	c.end(t)
	if p, err := c.Peer.Process(); !errors.Is(err, caller.ErrGone) {
		t.Errorf("%+v, %v, want ErrGone", p, err)
	}
	reuse(t, c.PID)
	if p, err := c.Peer.Process(); !errors.Is(err, caller.ErrGone) {
		t.Errorf("with its number in use again: %+v, %v, want ErrGone", p, err)
	}
}

// reuse makes a new process get a process ID.
func reuse(t *testing.T, pid int) {
	t.Helper()
	for range 100 {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			return
		}
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Skipf("NOT RUN: the number of a process used again: %v: run it in a kernel with CONFIG_CHECKPOINT_RESTORE", err)
		}
		cmd := exec.Command("cat")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			_ = cmd.Wait()
		})
	}
	t.Fatalf("no process has the number %d again", pid)
}

// TestPeerThatIsAnotherAccountNow checks that a peer that changed its account is refused.
func TestPeerThatIsAnotherAccountNow(t *testing.T) {
	agenttest.Root(t, "can become another account")
	c := start(t, nil)
	fmt.Fprintln(c.stdin, "setuid")
	if _, err := fmt.Fscanln(c.stdout, new(string)); err != nil {
		t.Fatal(err)
	}
	if p, err := c.Peer.Process(); err == nil || !strings.Contains(err.Error(), "connected as uid 0, is uid 64999 now") {
		t.Errorf("%+v, %v", p, err)
	}
}
