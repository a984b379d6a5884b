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

	"github.com/florete/florete/tests/kit"
)

// childEnv is the environment variable that tells this test binary to act as the child of DialAs or
// a similar function.
const childEnv = "FLORETE_TEST_DIAL"

// Main runs the tests of a package that uses DialAs or a similar function. The package must call it
// from TestMain. In a child process that such a function has started, Main performs the child's
// task instead.
func Main(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

// Child performs the task of a child process that DialAs or a similar function has started, and
// then exits. In any other process, it returns at once.
func Child() {
	if what := strings.Fields(os.Getenv(childEnv)); len(what) > 0 {
		if err := pingOnce(what[0], what[1], what[2:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// Root skips a test that does not run as root, with the message "only root …". The caller passes
// the end of this message, such as "can make control groups". The script tests/run lists the
// skipped tests.
func Root(t testing.TB, does string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: only root " + does)
	}
}

// DialAs tests whether another account can connect to the TCP address addr. It starts a process of
// the account, which sends one byte and expects it back. DialAs returns the error of that process.
// It requires root.
func DialAs(t testing.TB, uid uint32, addr string) error {
	t.Helper()
	return child(uid, nil, "tcp "+addr, never)
}

// DialIn is like DialAs, but its process belongs to root and runs in the given control group. It
// tests whether the forwarder recognizes a caller by its systemd unit.
func DialIn(t testing.TB, cgroup *os.File, addr string) error {
	t.Helper()
	return child(0, cgroup, "tcp "+addr, never)
}

// SendAs is like DialAs, but over UDP: it tests whether another account can send a datagram to an
// address and receive an answer.
func SendAs(t testing.TB, uid uint32, addr string) error {
	t.Helper()
	return child(uid, nil, "udp "+addr, never)
}

// SendInVain tests that datagrams from another account to a UDP address are not answered. It
// returns an error if an answer arrives. The sending process keeps its socket open until refused
// returns true. The optional last argument is the address to send from.
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

// Self returns a command that runs this test binary as another account. The variable env, of the
// form NAME=VALUE, is added to the environment. The command runs in the given control group or, if
// cgroup is nil, in that of the test. Self requires root.
func Self(uid uint32, cgroup *os.File, env string) (*exec.Cmd, error) {
	// The other account can run a binary through this path even if it cannot enter the binary's
	// directory, as long as the mode of the binary permits it.
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

// child runs this test binary as another account, for DialAs and similar functions. It stops
// waiting for an answer when the function enough returns true.
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

// pingOnce sends one byte to an address and waits until the byte comes back. It stops waiting after
// kit.Patience or when standard input ends.
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
	c.SetDeadline(time.Now().Add(kit.Patience))
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
