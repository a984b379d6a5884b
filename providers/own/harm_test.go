package own_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestHarmless checks that an executable that answers wrongly, slowly, not at all or with 100 MB
// affects only the request of the need concerned, which is repeated.
func TestHarmless(t *testing.T) {
	const ever = 10 * time.Second // on a busy machine, too
	for name, c := range map[string]struct {
		text, log string
		deadline  time.Duration
	}{
		"no JSON":            {`echo "password: $secret"`, "no JSON", ever},
		"nothing":            {``, "empty", ever},
		"null":               {`echo null`, "want {", ever},
		"a list":             {`echo '[]'`, "want {", ever},
		"another field":      {`echo '{"value": {"password": "x"}}'`, "want {", ever},
		"a number":           {`echo '{"values": {"password": 1}}'`, "want {", ever},
		"another value":      {`echo '{"values": {"password": "x", "user": "y"}}'`, `value \"user\" is not among`, ever},
		"no value":           {`echo '{"values": {"pass": "x"}}'`, `no value \"password\"`, ever},
		"an empty value":     {`echo '{"values": {"password": ""}}'`, `no value \"password\"`, ever},
		"over already":       {`echo '{"values": {"password": "x"}, "expires": 1}'`, "which is over", ever},
		"no kind of error":   {`echo '{"error": {"kind": "fatal", "message": "x"}}'`, "error of kind", ever},
		"no text":            {`printf '{"values": {"password": "\377"}}'`, "no JSON", ever},
		"two answers":        {`answer; answer`, "no JSON", ever},
		"a status":           {`answer; exit 3`, "exit status 3", ever},
		"a crash":            {`kill -SEGV $$`, "segmentation fault", ever},
		"slow":               {`sleep 60`, "no answer within 4s", 4 * time.Second},
		"slow at the end":    {`answer; exec >&-; sleep 60`, "no answer within 4s", 4 * time.Second},
		"a child that stays": {`sleep 60 & answer`, "WaitDelay", ever},
		"100 MB":             {`head -c 104857600 /dev/zero | tr '\0' x`, "over 65536 bytes", ever},
		"without end":        {`trap '' PIPE; yes`, "over 65536 bytes", ever},
		"a log of 10 MB":     {`yes "$secret" | head -c 10485760 >&2; exit 3`, "(secret)·(secret)·", ever},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := filepath.Join(public(t), "group")
			if err := os.WriteFile(group, nil, 0o666); err != nil || os.Chmod(group, 0o666) != nil {
				t.Fatal(err)
			}
			path := script(t, `#!/bin/sh
call=$(cat)
secret=$(echo "$call" | sed -n 's/.*"secret":"\([^"]*\)".*/\1/p')
answer() { echo "{\"values\":{\"password\":\"$secret\"}}"; }
case $call in *mailbox-wiki-news*) answer; exit;; esac
echo $$ > `+group+"\n"+c.text+"\n")
			harmless(t, c.deadline, settings("run", path), c.log)
			gone(t, group)
		})
	}
}

// harmless requests what is answered badly, and beside it what is not.
func harmless(t *testing.T, deadline time.Duration, settings any, want string) {
	t.Helper()
	var log bytes.Buffer
	var mu sync.Mutex
	e := providertest.NewEnv(t, "ursula")
	e.Logger = slog.New(slog.NewTextHandler(locked{&mu, &log}, nil))
	do := started(t, e, deadline, settings)
	_, err := do(t.Context(), need)
	providertest.WantError(t, err, hostapi.CodeInternal)
	a, err := do(t.Context(), "mailbox-wiki-news")
	if err != nil {
		t.Fatalf("another need: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(log.String(), want) || !strings.Contains(log.String(), need) {
		t.Errorf("the log has\n%s\nwant %s", log.String(), want)
	}
	for _, r := range e.Audit() {
		if r.Need == need {
			t.Errorf("an audit row of what was not answered: %+v", r)
		}
	}
	e.Stop()
	if strings.Contains(log.String(), a.Values["password"]) || strings.Contains(log.String(), "password: ") {
		t.Error("the log has what was written, or a secret")
	}
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// gone checks that the process group that a file names has ended.
func gone(t *testing.T, pids string) {
	t.Helper()
	group, err := os.ReadFile(pids)
	if err != nil || len(group) == 0 {
		t.Fatal("it did not run", err)
	}
	kit.Eventually(t, fmt.Sprintf("process group %s to end", group), func() bool { return !alive(strings.TrimSpace(string(group))) })
}

func alive(group string) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		b, _ := os.ReadFile(name)
		_, after, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(after); len(f) > 2 && f[2] == group && f[0] != "Z" {
			return true
		}
	}
	return false
}

// good is a service as it should be.
func good(w http.ResponseWriter, r *http.Request) {
	var call struct{ Secret string }
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, `{"values":{"password":%q}}`, call.Secret)
}

// serve serves at a Unix socket or a port, and returns the URL.
func serve(t *testing.T, network string, h http.HandlerFunc) string {
	t.Helper()
	address, url := "127.0.0.1:0", "http://"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "sock")
		url = "unix:"
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	if network == "unix" {
		return url + address
	}
	return url + l.Addr().String() + "/mailbox"
}

// TestHarmlessService checks the same for an HTTP service.
func TestHarmlessService(t *testing.T) {
	for name, c := range map[string]struct {
		bad  http.HandlerFunc
		want string
	}{
		"a status": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "status 500"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
		}, "status 307"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, "no JSON"},
		"silent":  {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
		"cut off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"100 MB": {func(w http.ResponseWriter, _ *http.Request) {
			for range 100 {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
					return
				}
			}
			t.Error("all of it was read")
		}, "over 65536 bytes"},
		"drop by drop": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}, "deadline exceeded"},
		"long headers": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("A", strings.Repeat("x", 1<<20)) }, "headers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harmless(t, time.Second, settings("url", serve(t, "unix", func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(b))
				if bytes.Contains(b, []byte("mailbox-wiki-news")) {
					good(w, r)
					return
				}
				c.bad(w, r)
			})), c.want)
		})
	}
	t.Run("not there", func(t *testing.T) {
		_, do := run(t, 0, settings("url", "unix:"+filepath.Join(t.TempDir(), "none")))
		_, err := do(t.Context(), need)
		providertest.WantError(t, err, hostapi.CodeMissing)
	})
}

// TestExecutable checks that a missing executable is waited for, and that an executable that others
// can replace is refused.
func TestExecutable(t *testing.T) {
	t.Parallel()
	path := python(t, answers)
	_, do := run(t, 0, settings("run", path))
	refused := func(code string) {
		t.Helper()
		_, err := do(t.Context(), need)
		providertest.WantError(t, err, hostapi.Code{Name: code, Class: hostapi.Transient})
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	refused(hostapi.CodeInternal.Name)
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 1234, 1234); err != nil || os.Chmod(path, 0o755) != nil {
			t.Fatal(err)
		}
		refused(hostapi.CodeInternal.Name)
		if err := os.Chown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(path, path+"~"); err != nil {
		t.Fatal(err)
	}
	refused(hostapi.CodeMissing.Name)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	refused(hostapi.CodeInternal.Name)
	if err := os.Remove(path); err != nil || os.Rename(path+"~", path) != nil || os.Chmod(path, 0o755) != nil {
		t.Fatal(err)
	}
	if _, err := do(t.Context(), need); err != nil {
		t.Error(err)
	}
}

// TestBusy checks that a caller that cannot use the executable now is told when to try again.
func TestBusy(t *testing.T) {
	t.Parallel()
	dir := public(t)
	if err := os.Chmod(dir, 0o777); err != nil { // the executable is nobody's
		t.Fatal(err)
	}
	begun, release := filepath.Join(dir, "begun"), filepath.Join(dir, "release")
	_, do := run(t, kit.Patience, settings("run", python(t, fmt.Sprintf(`
import os
if not call['need'].endswith('news'):
    open(%q, 'w').close()
    while not os.path.exists(%q): time.sleep(0.01)
`, begun, release)+answers)))
	slow := make(chan error, 1)
	go func() { _, err := do(context.Background(), need); slow <- err }()
	kit.Succeeds(t, "the executable to run", func() error { _, err := os.Stat(begun); return err })
	_, err := do(t.Context(), "mailbox-wiki-news")
	providertest.WantError(t, err, hostapi.CodeBusy)
	if err := os.WriteFile(release, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-slow; err != nil {
		t.Error(err)
	}
	if _, err := do(t.Context(), "mailbox-wiki-news"); err != nil {
		t.Error(err)
	}
}

// TestSquatted checks that an ordinary account that took the port of a service gets no secret.
func TestSquatted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: only root listens as another account")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(5000); err != nil {
		t.Fatal(err)
	}
	url := serve(t, "tcp", func(http.ResponseWriter, *http.Request) { t.Error("it got the request") })
	if err := unix.Setfsuid(0); err != nil {
		t.Fatal(err)
	}
	_, do := run(t, 0, settings("url", url))
	_, err := do(t.Context(), need)
	providertest.WantError(t, err, hostapi.CodeInternal)
}
