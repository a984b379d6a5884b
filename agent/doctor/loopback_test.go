package doctor

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLoopback checks that the doctor finds a listener whose loopback address was removed. The
// finding includes the command that restores the address.
func TestLoopback(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"127.0.0.1": "", "127.77.1.2": "",
		"192.0.2.77": "ip link set lo up && ip address replace 192.0.2.77/32 dev lo",
	} {
		found := loopback(map[string]string{"wiki.demo.flor.rete": at})
		if want == "" && found != nil || want != "" && (len(found) != 1 || found[0].Fix != want || !strings.Contains(found[0].Problem, at)) {
			t.Errorf("%s: %v, want %q", at, found, want)
		}
	}
}

// TestNoLoopback checks the findings for a host on which the whole network of loopback addresses is
// missing.
func TestNoLoopback(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil || os.Getuid() != 0 {
		t.Skip("NOT RUN: a network namespace needs root, and ip")
	}
	ended := make(chan []Finding)
	go func() {
		defer close(ended)
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		for _, words := range []string{"link set lo up", "address add 192.0.2.9/32 dev lo", "address del 127.0.0.1/8 dev lo"} {
			if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
				t.Errorf("ip %s: %v: %s", words, err, out)
			}
		}
		ended <- loopback(map[string]string{"wiki.demo.flor.rete": "127.77.1.2"})
	}()
	found := <-ended
	if len(found) != 1 || found[0].Fix != "ip link set lo up && ip address replace 127.0.0.1/8 dev lo" {
		t.Errorf("%v", found)
	}
}
