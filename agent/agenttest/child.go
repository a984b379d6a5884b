package agenttest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// childEnv makes a test binary that calls Main the child of DialAs.
const childEnv = "FLORETE_TEST_DIAL"

// Main runs the tests, or what DialAs wants of its child.
func Main(m *testing.M) {
	if addr := os.Getenv(childEnv); addr != "" {
		if err := pingOnce(addr); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// DialAs connects to addr from a process of another user, which needs root, and
// wants one byte echoed. The error is what that process saw.
func DialAs(t testing.TB, uid uint32, addr string) error {
	t.Helper()
	// By this name the other user can run a binary in a directory it cannot enter.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+addr)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func pingOnce(addr string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	b := []byte{'x'}
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, err = io.ReadFull(c, b)
	return err
}
