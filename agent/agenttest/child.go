package agenttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childEnv makes a test binary that calls Child the child of DialAs.
const childEnv = "FLORETE_TEST_DIAL"

// Main runs the tests, or what DialAs wants of its child.
func Main(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

// Child does what DialAs wants where this process is its child, and ends it.
func Child() {
	if what := strings.Fields(os.Getenv(childEnv)); len(what) > 0 {
		if err := pingOnce(what[0], what[1], what[2:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// Root skips a test that needs root; tests/run reports it.
func Root(t testing.TB, does string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: only root " + does)
	}
}

// DialAs connects to addr from a process of another user, which needs root, and
// wants one byte echoed. The error is what that process saw.
func DialAs(t testing.TB, uid uint32, addr string) error {
	t.Helper()
	return child(uid, nil, "tcp "+addr, never)
}

// DialIn is DialAs from a process of root in a control group.
func DialIn(t testing.TB, cgroup *os.File, addr string) error {
	t.Helper()
	return child(0, cgroup, "tcp "+addr, never)
}

// SendAs is DialAs over UDP.
func SendAs(t testing.TB, uid uint32, addr string) error {
	t.Helper()
	return child(uid, nil, "udp "+addr, never)
}

// SendInVain is SendAs where nobody answers: the process has the socket until refused
// holds. Without an answer there is no error. From is an address to send from, or none.
func SendInVain(t testing.TB, uid uint32, addr string, refused func() bool, from ...string) error {
	t.Helper()
	err := child(uid, nil, "udp "+addr+" "+strings.Join(from, " "), refused)
	switch {
	case err == nil:
		return errors.New("there is an answer")
	case !strings.Contains(err.Error(), os.ErrDeadlineExceeded.Error()):
		return err
	}
	return nil
}

func never() bool { return false }

// Self is this test binary as another account, with an addition to its environment, and in a
// control group unless that is nil. It needs root.
func Self(uid uint32, cgroup *os.File, env string) (*exec.Cmd, error) {
	// By this name the other user can run a binary in a directory it cannot enter, if its
	// mode is what it is with the usual umask.
	const self = "/proc/self/exe"
	if err := os.Chmod(self, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), env)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if cgroup != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(cgroup.Fd())
	}
	return cmd, nil
}

// child runs this binary as another user. It waits no longer for an answer when enough
// holds.
func child(uid uint32, cgroup *os.File, what string, enough func() bool) error {
	cmd, err := Self(uid, cgroup, childEnv+"="+what)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out.String())
			}
			return err
		case <-time.After(5 * time.Millisecond):
			if enough() {
				stdin.Close()
			}
		}
	}
}

// pingOnce waits for an answer until its standard input ends, or for ten seconds.
func pingOnce(network, addr string, from []string) error {
	var dialer net.Dialer
	if len(from) > 0 {
		dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from[0]))
	}
	c, err := dialer.Dial(network, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	go func() {
		io.Copy(io.Discard, os.Stdin)
		c.SetDeadline(time.Now())
	}()
	b := []byte{'x'}
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, err = io.ReadFull(c, b)
	return err
}
