package confirm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/activation/documents"
)

// writeFile writes a file and the directories above it.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// process writes a proc_pid_stat(5) file of a process that began at a time since boot.
func process(t *testing.T, k login, pid int, at time.Duration) {
	t.Helper()
	writeFile(t, filepath.Join(k.proc, fmt.Sprint(pid), "stat"),
		fmt.Sprintf("%d (sshd: a) b) S 1 2 2 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 17 18 19\n", pid, at/clockTick))
}

// TestLoginBegan checks that a login began with the first of its processes, whatever was started in
// it since.
func TestLoginBegan(t *testing.T) {
	for name, c := range map[string]struct {
		cgroup, procs string
		want          time.Duration
		scope         string
		ok            bool
	}{
		"SSH":            {"0::/user.slice/user-0.slice/session-4.scope\n", "70\n60\n80\n", time.Minute, "session-4", true},
		"below it":       {"0::/user.slice/user-0.slice/session-4.scope/part\n", "70\n", 2 * time.Minute, "session-4", true},
		"hybrid":         {"12:pids:/x\n0::/user.slice/user-0.slice/session-4.scope\n", "70\n", 2 * time.Minute, "session-4", true},
		"unit":           {"0::/system.slice/deploy.service\n", "", 0, "", false},
		"container":      {"0::/\n", "", 0, "", false},
		"user's service": {"0::/user.slice/user-0.slice/user@0.service/app.slice/tmux.service\n", "", 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			k := login{t.TempDir(), t.TempDir()}
			writeFile(t, filepath.Join(k.proc, "self/cgroup"), c.cgroup)
			writeFile(t, filepath.Join(k.cgroups, "user.slice/user-0.slice/session-4.scope/cgroup.procs"), c.procs)
			process(t, k, 60, time.Minute)
			process(t, k, 70, 2*time.Minute)
			at, scope, ok, err := k.began()
			if err != nil || at != c.want || scope != c.scope || ok != c.ok {
				t.Errorf("%s, %q, %v, %v", at, scope, ok, err)
			}
		})
	}
}

// TestOldLogin checks that a login from before the change cannot confirm it, and that a later one
// can.
func TestOldLogin(t *testing.T) {
	real := kernel
	t.Cleanup(func() { kernel = real })
	kernel = login{t.TempDir(), t.TempDir()}
	writeFile(t, filepath.Join(kernel.proc, "self/cgroup"), "0::/session-4.scope\n")
	writeFile(t, filepath.Join(kernel.cgroups, "session-4.scope/cgroup.procs"), "60\n")
	h := newHost(t)
	c := h.begin()
	process(t, kernel, 60, documents.Begun(c)-time.Second)
	if err := Confirm(h.State, c.ID); err == nil || !strings.Contains(err.Error(), "login session-4 began before the change") || h.pending() == nil {
		t.Fatal(err)
	}
	process(t, kernel, 60, documents.Begun(c)+time.Second)
	if err := Confirm(h.State, c.ID); err != nil || h.pending() != nil {
		t.Fatal(err)
	}
}

// TestStarted compares the start time of this process with the kernel's.
func TestStarted(t *testing.T) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	at, err := started(string(stat))
	now, clockErr := documents.ReadClock()
	if err != nil || clockErr != nil || at <= 0 || at > now.Running || now.Running-at > time.Hour {
		t.Errorf("%s of %s: %v, %v", at, now.Running, err, clockErr)
	}
	if _, err := started("1 (x) S"); err == nil {
		t.Error("no error")
	}
}
