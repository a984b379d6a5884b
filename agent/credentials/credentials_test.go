package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// lines is the log of a service, which a test can read while the service writes to it.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.String()
}

// served is the host ursula, with a credential service that listens on socket.
type served struct {
	*agenttest.Host
	socket string
	log    *lines
	stop   context.CancelFunc
	ended  chan error
}

// serve starts a credential service. It requires root, because the service accepts only root.
func serve(t *testing.T, limit time.Duration) *served {
	agenttest.Root(t, "gets credentials")
	c := agenttest.NewCluster(t, "127.0.0.1:1")
	s := &served{Host: c.Ursula, socket: filepath.Join(t.TempDir(), "s"), log: &lines{}, ended: make(chan error, 1)}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	config := Config{
		Layout: s.Layout, Log: slog.New(slog.NewTextHandler(s.log, nil)),
		StartTimeout: func(context.Context, string) (time.Duration, error) { return limit, nil },
	}
	go func() { s.ended <- Serve(ctx, ln, nil, config) }()
	t.Cleanup(func() {
		s.stop()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// load requests a credential of a unit in the way that systemd does.
func (s *served) load(t *testing.T, unit, credential string) *net.UnixConn {
	t.Helper()
	name := fmt.Sprintf("@%x/unit/%s/%s", time.Now().UnixNano(), unit, credential)
	conn, err := net.DialUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}, &net.UnixAddr{Name: s.socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.CloseWrite()
	conn.SetDeadline(time.Now().Add(kit.Patience))
	return conn
}

// take reads the response to the end, as systemd does. It reports in ok whether the response is
// short enough for a credential.
func take(t *testing.T, conn *net.UnixConn) (text string, ok bool) {
	t.Helper()
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), len(b) <= maxCredential
}

func (s *served) logged(t *testing.T, text string) {
	t.Helper()
	kit.Succeeds(t, "a line of the log", func() error {
		if !strings.Contains(s.log.String(), text) {
			return fmt.Errorf("no %q in the log:\n%s", text, s.log)
		}
		return nil
	})
}

func TestGiven(t *testing.T) {
	s := serve(t, 0)
	dir := hostdir.Current(s.Layout.Need("cert-service-outline"))
	key, err := os.ReadFile(filepath.Join(dir, hostdir.FileKey))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := take(t, s.load(t, "outline.service", "cert_key.pem")); !ok || got != string(key) {
		t.Errorf("got %d bytes, want the key", len(got))
	}
	var all map[string]string
	got, _ := take(t, s.load(t, "outline.service", "cert"))
	if err := json.Unmarshal([]byte(got), &all); err != nil || len(all) != 3 || all[hostdir.FileKey] != string(key) {
		t.Errorf("got %v with %d files, want 3", err, len(all))
	}
	if strings.Contains(s.log.String(), "PRIVATE KEY") {
		t.Error("a key is in the log")
	}
}

func TestRefused(t *testing.T) {
	s := serve(t, 0)
	for _, c := range []struct{ unit, credential, why string }{
		{"wiki.service", "cert_key.pem", "nothing is delivered for wiki.service on this host"},
		{"outline.service", "oidc_client-secret", "outline.service has no such credential, it has cert_bundle.pem, cert_key.pem, cert_svid.pem"},
		{"outline.service", "cert_../key.pem", "want @<random>/unit/<unit>/<credential>"},
		{"outline.service", "cert_", "has no such credential"},
		{"node-ursula.service", "cert_key.pem", "nothing is delivered for node-ursula.service"},
	} {
		if text, ok := take(t, s.load(t, c.unit, c.credential)); c.why != "want @<random>/unit/<unit>/<credential>" && (ok || strings.Trim(text, "\x00") != "") {
			t.Errorf("%s %s: got %d bytes, want what no credential can be", c.unit, c.credential, len(text))
		}
		s.logged(t, c.why)
	}
}

func TestWaits(t *testing.T) {
	s := serve(t, 0)
	key := filepath.Join(s.Layout.Need("cert-service-outline"), "current")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	first, second := s.load(t, "outline.service", "cert_key.pem"), s.load(t, "outline.service", "cert_svid.pem")
	s.logged(t, "credential=cert_key.pem for=")
	second.Close()
	s.logged(t, "the unit does not start any more")
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	if text, ok := take(t, first); !ok || !strings.Contains(text, "PRIVATE KEY") {
		t.Errorf("got %d bytes, want the key", len(text))
	}
}

func TestGivesUp(t *testing.T) {
	c := agenttest.NewCluster(t, "127.0.0.1:1")
	os.Remove(hostdir.Current(c.Ursula.Layout.Need("cert-service-outline")))
	conn := asked(t)
	synctest.Test(t, func(t *testing.T) {
		config := Config{
			Layout: c.Ursula.Layout, Log: slog.New(slog.DiscardHandler),
			StartTimeout: func(context.Context, string) (time.Duration, error) { return 10 * time.Second, nil },
		}
		began := time.Now()
		_, err := (&server{Config: config}).answer(t.Context(), conn, request{unit: "outline.service", name: "cert_key.pem", begun: began.Add(-2 * time.Second)})
		if want := "not fulfilled before the unit's start times out: need cert-service-outline"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if d := time.Since(began); d != 7*time.Second {
			t.Errorf("it took %s, want 7s, as the start began 2s before and may take 10s", d)
		}
	})
}

// asked returns the service's end of a connection over which a credential is requested.
func asked(t *testing.T) *net.UnixConn {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	systemd, err := net.DialUnix("unix", nil, ln.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { systemd.Close() })
	conn, err := ln.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestStoppedRefuses(t *testing.T) {
	s := serve(t, 0)
	os.Remove(hostdir.Current(s.Layout.Need("cert-service-outline")))
	conn := s.load(t, "outline.service", "cert_key.pem")
	s.logged(t, "INFO msg=waits")
	s.stop()
	if _, ok := take(t, conn); ok {
		t.Error("the unit starts with an empty credential")
	}
}

// TestIdle checks that the credential service ends after an idle time. It must not end while a
// caller waits, and it serves other callers meanwhile.
func TestIdle(t *testing.T) {
	s := serve(t, 0)
	s.stop()
	<-s.ended
	defer func() { s.ended <- nil }()
	current := hostdir.Current(s.Layout.Need("cert-service-outline"))
	if err := os.Rename(current, current+".away"); err != nil {
		t.Fatal(err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	first := s.load(t, "outline.service", "cert_key.pem")
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(t.Context(), ln, nil, Config{
			Layout: s.Layout, Log: slog.New(slog.NewTextHandler(s.log, nil)), Idle: 50 * time.Millisecond,
			StartTimeout: func(context.Context, string) (time.Duration, error) { return 0, nil },
		})
	}()
	s.logged(t, "INFO msg=waits")
	time.Sleep(150 * time.Millisecond) // long enough that no request was recent; a shorter time only makes the test easier
	if _, ok := take(t, s.load(t, "wiki.service", "cert_key.pem")); ok {
		t.Error("wiki got a credential that it does not have")
	}
	select {
	case err := <-ended:
		t.Fatalf("ended while somebody waits: %v", err)
	default:
	}
	if err := os.Rename(current+".away", current); err != nil {
		t.Fatal(err)
	}
	if _, ok := take(t, first); !ok {
		t.Error("who waited got nothing")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWithoutBus checks that the credential service works without a D-Bus connection to systemd. It
// must return delivered credentials, and wait for others as long as systemd does by default.
func TestWithoutBus(t *testing.T) {
	var log lines
	c := Config{Log: slog.New(slog.NewTextHandler(&log, nil)), StartTimeout: func(context.Context, string) (time.Duration, error) { return 0, os.ErrNotExist }}
	synctest.Test(t, func(t *testing.T) {
		if left := time.Until((&server{Config: c}).end(t.Context(), request{unit: "wiki.service", begun: time.Now()})); left != 81*time.Second {
			t.Errorf("waits %s, want 81s", left)
		}
	})
	if !strings.Contains(log.String(), "unit=wiki.service limit=1m30s") {
		t.Errorf("log: %s", &log)
	}
}

// TestBegun checks that the start time of a process that connects is found. The process has already
// run for a while.
func TestBegun(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	before := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	after := time.Now()
	const tick = 10 * time.Millisecond
	time.Sleep(5 * tick) // so that the start time differs from the current time
	// A result is off by the time for which this process waits between reading two clocks.
	kit.Succeeds(t, "the start time of a process", func() error {
		if at := begun(cmd.Process.Pid); at.Before(before.Add(-2*tick)) || at.After(after.Add(tick)) {
			return fmt.Errorf("began %s after it was started, want 0 to %s", at.Sub(before), after.Sub(before))
		}
		return nil
	})
	kit.Succeeds(t, "the start time of a peer", func() error {
		r, _ := parsePeer(asked(t)) // this process connects from an address that systemd does not use
		if off := r.begun.Sub(begun(os.Getpid())).Abs(); off > tick {
			return fmt.Errorf("%s off", off)
		}
		return nil
	})
}

func TestParse(t *testing.T) {
	got, err := parse("@3f0a/unit/wiki@1.service/oidc_client-secret")
	if want := (request{unit: "wiki@1.service", name: "oidc_client-secret", key: "request-3f0a"}); got != want || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"", "@", "@1", "/run/x", "@1/unit/a.service", "@/unit/a.service/b", "@1/unit//b", "@1/unit/a.service/", "@1/unit/a/b/c", "@1/user/a.service/b", "1/unit/a.service/b"} {
		if got, err := parse(bad); err == nil {
			t.Errorf("%q: got %+v", bad, got)
		}
	}
}
