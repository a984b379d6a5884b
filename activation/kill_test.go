package activation

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// victimConfig makes a copy of this test binary run one pass, and die by SIGKILL before one of the
// steps.
const victimConfig = "ACTIVATION_VICTIM"

type victim struct {
	State, Closure, HostKey, Told string
	At                            int64
}

func TestMain(m *testing.M) {
	if text := os.Getenv(victimConfig); text != "" {
		var v victim
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			panic(err)
		}
		v.run()
	}
	os.Exit(m.Run())
}

func (v victim) run() {
	left := atomic.Int64{}
	left.Store(v.At)
	s, err := Run(context.Background(), Config{
		State: hostdir.Layout(v.State), Closure: v.Closure, HostKey: v.HostKey, Once: true,
		Report: func(e event.Event) { fmt.Println(e) },
		Notify: func(_ context.Context, unit string) error {
			return os.WriteFile(filepath.Join(v.Told, unit), nil, 0o644)
		},
		Step: func(string) {
			if left.Add(-1) < 0 {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(event.ExitUsage)
	}
	os.Exit(s.Exit())
}

// start runs a victim and returns its exit code, -1 if it was killed.
func (v victim) start(t *testing.T) (int, string) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	// With the race detector a process would sleep for a second when it ends.
	cmd.Env = append(os.Environ(), victimConfig+"="+string(text), "GORACE=atexit_sleep_ms=0")
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestKilledAtEachStep kills a first activation before each change that it makes to the disk. The
// next one completes it: nothing is issued twice, nothing is left over, and units were notified.
func TestKilledAtEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	const together = 10
	var done atomic.Bool
	for from := int64(0); !done.Load() && !t.Failed(); from += together {
		t.Run(fmt.Sprint("from ", from), func(t *testing.T) {
			for at := from; at < from+together; at++ {
				t.Run(fmt.Sprint(at), func(t *testing.T) {
					t.Parallel()
					if !killAt(t, at) {
						return
					}
					if done.Store(true); at < 40 {
						t.Errorf("only %d steps", at)
					}
				})
			}
		})
	}
}

// killAt reports whether the activation completed before it was killed.
func killAt(t *testing.T, at int64) (done bool) {
	c := NewCluster(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	forge := c.Serve("forge", l)
	defer forge.Stop()
	m := c.Manifest()
	m.Needs = append(m.Needs, sshNeeds()...)
	m.Providers["forge"] = Provides("forge", l.Addr().String())
	v := victim{State: filepath.Join(t.TempDir(), "state"), Closure: t.TempDir(), HostKey: c.HostKey, Told: t.TempDir(), At: at}
	kit.Write(v.Closure, kit.Document(1, m))
	forge.Offer(kit.Signed(1, m, c.Signing))
	code, out := v.start(t)
	if code == event.ExitFulfilled {
		return true
	}
	if code != -1 {
		t.Fatalf("step %d: exit %d\n%s", at, code, out)
	}
	v.At = 1 << 40
	if code, out = v.start(t); code != event.ExitFulfilled {
		t.Fatalf("step %d: after it: exit %d\n%s", at, code, out)
	}
	layout := hostdir.Layout(v.State)
	keys := map[string]map[string]bool{}
	for _, call := range forge.Calls("") {
		if keys[call.Need] == nil {
			keys[call.Need] = map[string]bool{}
		}
		keys[call.Need][call.Key] = true
	}
	for _, n := range m.Needs {
		if len(keys[n.ID]) != 1 {
			t.Errorf("step %d: %s was asked for with %d idempotency keys", at, n.ID, len(keys[n.ID]))
		}
		for name := range n.Deliver.Files {
			if _, err := os.Stat(filepath.Join(hostdir.Current(layout.Need(n.ID)), name)); err != nil {
				t.Errorf("step %d: %v", at, err)
			}
		}
	}
	readSSH(t, layout)
	if _, err := os.Stat(filepath.Join(v.Told, "outline.service")); err != nil {
		t.Errorf("step %d: the unit was not told", at)
	}
	var left []string
	_ = filepath.WalkDir(v.State, func(path string, d os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".new") || strings.Contains(path, "gen-2") || strings.HasSuffix(path, "pending.json") {
			left = append(left, path)
		}
		return err
	})
	if len(left) > 0 {
		t.Errorf("step %d: left over: %v", at, left)
	}
	return false
}

// TestKilledAtEachStepOfRenewal kills an activation that replaces an SSH certificate before each
// change that it makes to the disk. At every moment a key with its certificate is in force. The next
// activation completes the renewal with the same request.
func TestKilledAtEachStepOfRenewal(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	const together = 5
	var done atomic.Bool
	for from := int64(0); !done.Load() && !t.Failed(); from += together {
		t.Run(fmt.Sprint("from ", from), func(t *testing.T) {
			for at := from; at < from+together; at++ {
				t.Run(fmt.Sprint(at), func(t *testing.T) {
					t.Parallel()
					if !killRenewalAt(t, at) {
						return
					}
					if done.Store(true); at < 10 {
						t.Errorf("only %d steps", at)
					}
				})
			}
		})
	}
}

// killRenewalAt reports whether the renewal completed before it was killed.
func killRenewalAt(t *testing.T, at int64) (done bool) {
	c := NewCluster(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	forge := c.Serve("forge", l)
	defer forge.Stop()
	m := c.Manifest()
	user := kit.SSHNeed(alice, "forge")
	m.Needs = []document.Need{m.Needs[0], user}
	m.Providers["forge"] = Provides("forge", l.Addr().String())
	v := victim{State: filepath.Join(t.TempDir(), "state"), Closure: t.TempDir(), HostKey: c.HostKey, Told: t.TempDir(), At: 1 << 40}
	kit.Write(v.Closure, kit.Document(1, m))
	if code, out := v.start(t); code != event.ExitFulfilled {
		t.Fatalf("exit %d\n%s", code, out)
	}
	layout := hostdir.Layout(v.State)
	old := readSSH(t, layout)
	m.Needs[1].Generation = 2
	kit.Write(v.Closure, kit.Document(2, m))
	v.At = at
	code, out := v.start(t)
	if code == event.ExitFulfilled {
		return true
	}
	if code != -1 {
		t.Fatalf("step %d: exit %d\n%s", at, code, out)
	}
	readSSH(t, layout)
	v.At = 1 << 40
	if code, out = v.start(t); code != event.ExitFulfilled {
		t.Fatalf("step %d: after it: exit %d\n%s", at, code, out)
	}
	if readSSH(t, layout).Serial == old.Serial {
		t.Errorf("step %d: the certificate was not replaced", at)
	}
	keys := map[string]bool{}
	for _, call := range forge.Calls(user.ID) {
		keys[call.Key] = true
	}
	if len(keys) != 2 {
		t.Errorf("step %d: %d certificates were requested, want 2", at, len(keys))
	}
	return false
}
