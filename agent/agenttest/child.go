package agenttest

import (
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

// childEnv makes a test binary that calls Main the child of DialAs.
const childEnv = "FLORETE_TEST_DIAL"

// Main runs the tests, or what DialAs wants of its child.
func Main(m *testing.M) {
	if what := strings.Fields(os.Getenv(childEnv)); len(what) > 0 {
		if err := pingOnce(what[0], what[1], what[2:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Root skips a test that needs root, which tests/run says when it is not.
func Root(t testing.TB, does string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: only root " + does)
	}
}

// DialAs connects to addr from a process of another user, which needs root, and
// wants one byte echoed. The error is what that process saw.
func DialAs(t testing.TB, uid uint32, addr string) error {
	t.Helper()
	return child(uid, "tcp "+addr)
}

// SendAs is DialAs over UDP, where no answer within a second is an error. From is an
// address to send from, or none.
func SendAs(t testing.TB, uid uint32, addr string, from ...string) error {
	t.Helper()
	return child(uid, "udp "+addr+" "+strings.Join(from, " "))
}

func child(uid uint32, what string) error {
	// By this name the other user can run a binary in a directory it cannot enter.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func pingOnce(network, addr string, from []string) error {
	var dialer net.Dialer
	patience := 10 * time.Second
	if network == "udp" {
		patience = time.Second // nobody says no
	}
	if len(from) > 0 {
		dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from[0]))
	}
	c, err := dialer.Dial(network, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	b := []byte{'x'}
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, err = io.ReadFull(c, b)
	return err
}
