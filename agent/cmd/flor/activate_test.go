package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/activationtest"
)

// machine is a host for tests of flor activate. Its provider listens on loopback.
type machine struct {
	t        *testing.T
	provider *activationtest.Provider
	args     []string
	told     string
}

func newMachine(t *testing.T) *machine {
	c := activationtest.NewCluster(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := c.Serve("forge", l)
	t.Cleanup(p.Stop)
	m := c.Manifest()
	m.Providers["forge"] = activationtest.Provides("forge", l.Addr().String())
	closure := t.TempDir()
	kit.Write(closure, kit.Document(1, m))
	p.Offer(kit.Signed(1, m, c.Signing))
	told := filepath.Join(t.TempDir(), "told")
	hook := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(hook, fmt.Appendf(nil, "#!/bin/sh\necho \"$@\" >> %s\n", told), 0o755); err != nil {
		t.Fatal(err)
	}
	return &machine{t, p, []string{"--closure", closure, "--state", t.TempDir(), "--ssh-host-key", c.HostKey, "--hook", hook}, told}
}

// TestReportInJournal checks the lines that flor activate writes to the journal. A file takes the
// place of the stream that systemd connects.
func TestReportInJournal(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "stream"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(log.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", st.Dev, st.Ino))
	m := newMachine(t)
	m.provider.SetRefuse(func(activationtest.Call) *hostapi.Error {
		return hostapi.Errorf(hostapi.CodeNotGranted, "no grant")
	})
	cmd := newActivateCmd(&instance{})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetErr(log)
	cmd.SetArgs(append(m.args, "--once"))
	if err := cmd.ExecuteContext(t.Context()); err != exit(event.ExitRefused) {
		t.Errorf("got %v", err)
	}
	b, err := os.ReadFile(log.Name())
	if err != nil || !regexp.MustCompile(`(?m)^<[34]>.*no grant`).Match(b) || regexp.MustCompile(`(?m)^[^< ]`).Match(b) {
		t.Errorf("%v: got\n%s", err, b)
	}
}

// activate runs flor activate on the host. It returns the exit code and the output.
func (m *machine) activate(ctx context.Context, more ...string) (code int, stdout, stderr string) {
	var out, log bytes.Buffer
	cmd := newActivateCmd(&instance{})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	cmd.SetArgs(append(append([]string{}, m.args...), more...))
	err := cmd.ExecuteContext(ctx)
	var e exit
	switch {
	case errors.As(err, &e):
		code = int(e)
	case err != nil:
		code = event.ExitUsage
		fmt.Fprintln(&log, err)
	}
	return code, out.String(), log.String()
}

func (m *machine) want(code int, text string, more ...string) {
	m.t.Helper()
	got, stdout, stderr := m.activate(m.t.Context(), more...)
	if got != code || !strings.Contains(stdout+stderr, text) {
		m.t.Fatalf("exit %d, want %d with %q\n%s%s", got, code, text, stdout, stderr)
	}
}

func TestActivateExits(t *testing.T) {
	m := newMachine(t)
	m.want(event.ExitUsage, "unknown flag", "--twice")
	m.want(event.ExitUsage, "want 0 < initial <= max", "--backoff-initial", "1h")
	m.want(event.ExitUsage, "closure: lstat /nonexistent: no such file or directory", "--closure", "/nonexistent")
	m.provider.SetRefuse(func(c activationtest.Call) *hostapi.Error {
		if c.Need == "oidc-outline" {
			return hostapi.Errorf(hostapi.CodePolicyBehind, "the policy is older")
		}
		return nil
	})
	m.want(event.ExitWaiting, "oidc-outline: attempt 1 to forge failed: transient (policy-behind): the policy is older; next in ", "--once", "--backoff-initial", "1ms")
	m.provider.SetRefuse(func(c activationtest.Call) *hostapi.Error {
		if c.Need == "oidc-outline" {
			return hostapi.Errorf(hostapi.CodeNotGranted, "no grant")
		}
		return nil
	})
	kit.NextSecond() // times that are kept across restarts are in seconds
	m.want(event.ExitRefused, "denied (not-granted): no grant; next in 1h", "--once")
	if err := os.RemoveAll(m.args[3]); err != nil {
		t.Fatal(err)
	}
	m.provider.SetRefuse(nil)
	m.want(event.ExitFulfilled, "summary: 3/3 needs fulfilled", "--once")
	if b, err := os.ReadFile(m.told); err != nil || string(b) != "outline.service\n" {
		t.Errorf("hook was called with %q: %v", b, err)
	}
}

// TestActivateOwner checks that flor activate makes the forwarder's account the owner of the
// certificates, and of no other files. The forwarder can then read its keys without privileges.
func TestActivateOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: only root can give files away")
	}
	m := newMachine(t)
	m.want(event.ExitWaiting, `owner "no-such-account": no such account on this host: create it`, "--once", "--owner", "no-such-account")
	if err := os.RemoveAll(m.args[3]); err != nil {
		t.Fatal(err)
	}
	m.want(event.ExitFulfilled, "summary: 3/3 needs fulfilled", "--once", "--owner", "daemon")
	for file, want := range map[string]uint32{"cert-node/current/" + hostdir.FileKey: 1, "oidc-outline/current/client-secret": 0} {
		info, err := os.Stat(filepath.Join(m.args[3], "needs", file))
		if err != nil {
			t.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != want {
			t.Errorf("%s belongs to uid %d, want %d (daemon is 1)", file, uid, want)
		}
	}
}

// TestActivateUmask checks that other accounts can read the files that flor activate writes for
// them, even if the person who runs it has a strict umask.
func TestActivateUmask(t *testing.T) {
	m := newMachine(t)
	defer syscall.Umask(syscall.Umask(0o077))
	m.want(event.ExitFulfilled, "summary: 3/3 needs fulfilled", "--once")
	for _, dir := range []string{"needs", "needs/cert-node", "needs/cert-node/current", "documents"} {
		if info, err := os.Stat(filepath.Join(m.args[3], dir)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, mode %s, want 0755", dir, err, info.Mode())
		}
	}
}

func TestActivateJSON(t *testing.T) {
	m := newMachine(t)
	code, stdout, stderr := m.activate(t.Context(), "--once", "--json")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	seen := map[string]int{}
	for line := range strings.Lines(stdout) {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		seen[e.Event]++
	}
	if seen[event.Fulfilled] != 3 || seen[event.Summarized] != 1 {
		t.Errorf("%v", seen)
	}
}

// TestActivateTellsSystemd checks what flor activate tells systemd as a unit of Type=notify. It is
// ready once the documents are verified, even if no provider answers. Its status names the needs
// that it waits for.
func TestActivateTellsSystemd(t *testing.T) {
	m := newMachine(t)
	m.provider.Stop()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		code, _, _ := m.activate(ctx)
		ended <- code
	}()
	if err := conn.SetReadDeadline(time.Now().Add(kit.Patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<16)
	for first := true; ; first = false {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		text := string(buf[:n])
		if first && !strings.HasPrefix(text, "READY=1\nSTATUS=0/3 needs fulfilled; cert-node waiting") {
			t.Fatalf("%s", text)
		}
		if strings.Contains(text, "cert-node waiting (forge): transient (unavailable): ") && strings.Contains(text, "connection refused, next ") {
			break
		}
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("stopped while waiting: exit %d", code)
	}
}
