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

// childEnv is set in child processes that DialAs and similar functions start.
const childEnv = "FLORETE_TEST_DIAL"

// Main runs the tests, or acts as the child of DialAs.
func Main(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

// Child performs the task of DialAs and exits if this process is its child.
func Child() {
	if what := strings.Fields(os.Getenv(childEnv)); len(what) > 0 {
		if err := pingOnce(what[0], what[1], what[2:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// Root skips a test that requires root. tests/run reports it.
func Root(t testing.TB, does string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: only root " + does)
	}
}

// DialAs connects to addr in a process of another user, which requires root, and expects one byte
// to be echoed. It returns the error of that process.
func DialAs(t testing.TB, uid uint32, addr string) error {
	t.Helper()
	return child(uid, nil, "tcp "+addr, never)
}

// DialIn is like DialAs in a process of root in a control group.
func DialIn(t testing.TB, cgroup *os.File, addr string) error {
	t.Helper()
	return child(0, cgroup, "tcp "+addr, never)
}

// SendAs is like DialAs over UDP.
func SendAs(t testing.TB, uid uint32, addr string) error {
	t.Helper()
	return child(uid, nil, "udp "+addr, never)
}

// SendInVain is like SendAs if no answer is expected. The process keeps its socket until refused
// returns true. A missing answer is not an error. from may contain an address to send from.
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

// Self returns a command that runs this test binary as another account, with an additional
// environment variable, and in a control group unless it is nil. It requires root.
func Self(uid uint32, cgroup *os.File, env string) (*exec.Cmd, error) {
	// Through this path the other user can run a binary in a directory that it cannot enter, if the
	// binary's mode permits it.
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

// child runs this binary as another user. It stops waiting for an answer when enough returns true.
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

// pingOnce waits for an answer until standard input ends, at most for ten seconds.
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
