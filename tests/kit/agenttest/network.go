package agenttest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// networkEnv is the environment variable by which a process knows that OwnNetwork started it.
const networkEnv = "FLORETE_TEST_NETWORK"

// OwnNetwork runs the calling test again in a child process with a network namespace of its own, so
// that the test can change addresses and routes. The namespace contains only loopback. In the
// child, OwnNetwork returns true and the test runs. In the original process, it returns false when
// the child has ended, and the test must return. OwnNetwork requires root.
func OwnNetwork(t *testing.T) bool {
	t.Helper()
	Root(t, "can make a network namespace")
	if os.Getenv(networkEnv) != "" {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(s)
		lo, err := unix.NewIfreq("lo")
		if err != nil {
			t.Fatal(err)
		}
		lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", fmt.Sprintf("-test.timeout=%s", "5m"))
	for _, name := range []string{"test.artifacts", "test.outputdir"} { // directories for screenshots
		cmd.Args = append(cmd.Args, "-"+name+"="+flag.Lookup(name).Value.String())
	}
	cmd.Env = append(os.Environ(), networkEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v:\n%s", err, out)
	}
	return false
}
