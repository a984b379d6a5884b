package own_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/own"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

const (
	kind = "mailbox"
	need = "mailbox-wiki-mail"
)

var request = map[string]any{"service": kit.ID("service/wiki"), "request": map[string]any{"address": "wiki@example.org"}}

// settings returns settings from the policy, for an executable or a service.
func settings(word, at string) map[string]any {
	return map[string]any{word: at, "values": []string{"password"}}
}

// public is a directory that every account can enter.
func public(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// script is an executable.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(public(t), kind)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// python is an executable that begins with what it reads.
func python(t *testing.T, text string) string {
	t.Helper()
	return script(t, "#!/usr/bin/env python3\nimport json, os, sys, time\ncall = json.load(sys.stdin)\n"+text)
}

const answers = `json.dump({"values": {"password": call["secret"]}}, sys.stdout)` + "\n"

// makes is the kind in a directory of its own for each process.
func makes(t *testing.T, deadline time.Duration) func(e *providertest.Env) server.AnyKind {
	return func(e *providertest.Env) server.AnyKind {
		return server.Any(own.New(own.Config{Name: kind, Dir: filepath.Join(public(t), "work"), Store: e.Store, Key: e.Key, Logger: e.Logger, Deadline: deadline}))
	}
}

// run runs a provider of the kind, and returns what sends ursula's request for a need, one of
// mail and news.
func run(t *testing.T, deadline time.Duration, settings any) (*providertest.Env, func(ctx context.Context, need string) (hostapi.Answer, error)) {
	t.Helper()
	e := providertest.NewEnv(t, "ursula")
	e.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	return e, started(t, e, deadline, settings)
}

func started(t *testing.T, e *providertest.Env, deadline time.Duration, settings any) func(ctx context.Context, need string) (hostapi.Answer, error) {
	t.Helper()
	e.Runs(kind, settings, makes(t, deadline))
	ursula := kit.ID("node/ursula")
	for _, name := range []string{need, "mailbox-wiki-news"} {
		e.Grant(ursula, name, kind, request)
	}
	e.Start()
	client := e.Client(ursula)
	return func(ctx context.Context, need string) (hostapi.Answer, error) {
		return client.Do(ctx, hostapi.Path(kind), hostapi.Request{Need: need, Serial: providertest.Serial, Generation: 1, Body: kit.JSON(request)})
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]any{
		"executable":  settings("run", python(t, answers)),
		"at a socket": settings("url", serve(t, "unix", good)),
	} {
		t.Run(name, func(t *testing.T) {
			providertest.Run(t, providertest.Suite{
				Kind: kind, Need: need, Request: request, Settings: settings, Make: makes(t, 0),
				Secret: []string{"password"}, Rotates: "password",
			})
		})
	}
}

// TestCall checks the input, process attributes and earlier state that the executable gets.
func TestCall(t *testing.T) {
	t.Parallel()
	e, do := run(t, 0, settings("run", python(t, `
call["cwd"], call["env"], call["ids"] = os.getcwd(), dict(os.environ), [os.getuid(), os.getgid(), os.getgroups()]
call["files"] = [os.readlink(f.path) for f in os.scandir("/proc/self/fd") if os.path.lexists(f.path)]
json.dump({"values": {"password": json.dumps(call)}}, sys.stdout)
`)))
	first, err := do(t.Context(), need)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Key, Need, Secret, Cwd string
		Caller, Service        spiffe.ID
		Request                map[string]string
		Generation, Rotation   int
		Last, Env              map[string]string
		IDs                    []any
		Files                  []string
	}
	if err := json.Unmarshal([]byte(first.Values["password"]), &got); err != nil {
		t.Fatal(err)
	}
	r := hostapi.Request{Need: need, Generation: 1, Body: kit.JSON(request)}
	key, _ := r.Key(kit.ID("node/ursula"))
	if got.Key != key || got.Need != need || got.Caller != kit.ID("node/ursula") || got.Service != kit.ID("service/wiki") ||
		got.Request["address"] != "wiki@example.org" || got.Generation != 1 || got.Rotation != 0 || len(got.Secret) != 43 || got.Last != nil {
		t.Errorf("called with %+v", got)
	}
	if ids := fmt.Sprint(got.IDs); os.Geteuid() == 0 && ids != "[65534 65534 []]" {
		t.Errorf("runs as %s", ids)
	}
	for name := range got.Env {
		if name != "LANG" && name != "PATH" && name != "HOME" && name != "LC_CTYPE" { // Python's own
			t.Errorf("has %s in its environment", name)
		}
	}
	for _, name := range got.Files {
		if strings.HasPrefix(name, "socket:") || strings.HasPrefix(name, e.Dir) {
			t.Errorf("has %s open", name)
		}
	}
	if filepath.Base(got.Cwd) != "work" {
		t.Errorf("runs in %s", got.Cwd)
	}

	e.Rotate(kit.ID("node/ursula"), need, 2)
	e.Publish(providertest.Serial + 1)
	e.Restart()
	r.Generation, r.Serial = 2, providertest.Serial+1
	second, err := e.Client(kit.ID("node/ursula")).Do(t.Context(), hostapi.Path(kind), r)
	if err != nil {
		t.Fatal(err)
	}
	before := got.Secret
	if err := json.Unmarshal([]byte(second.Values["password"]), &got); err != nil {
		t.Fatal(err)
	}
	if got.Last["password"] != first.Values["password"] || got.Generation != 2 || got.Secret == before {
		t.Errorf("called again with generation %d, last %v", got.Generation, got.Last)
	}
}

// TestOnce checks that a recorded act is not repeated, however many requests arrive at the same
// time.
func TestOnce(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(public(t), "runs")
	if err := os.WriteFile(runs, nil, 0o666); err != nil || os.Chmod(runs, 0o666) != nil {
		t.Fatal(err)
	}
	_, do := run(t, 0, settings("run", python(t, fmt.Sprintf("open(%q, 'a').write('.')\ntime.sleep(.1)\n", runs)+answers)))
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, err := do(context.Background(), need); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if b, _ := os.ReadFile(runs); string(b) != "." {
		t.Errorf("ran %d times", len(b))
	}
}

// TestKilledInTheMiddle checks that an act that was never answered is repeated in the same way.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	set := filepath.Join(public(t), "set")
	if err := os.WriteFile(set, nil, 0o666); err != nil || os.Chmod(set, 0o666) != nil {
		t.Fatal(err)
	}
	e, do := run(t, 0, settings("run", python(t, fmt.Sprintf(`
open(%q, 'a').write(call["secret"] + "\n")
if len(open(%[1]q).readlines()) == 1:
    os.kill(0, 9)
`, set)+answers)))
	_, err := do(t.Context(), need)
	providertest.WantError(t, err, hostapi.CodeInternal)
	e.Store.Fail(fmt.Errorf("killed before the commit"))
	_, err = do(t.Context(), need)
	providertest.WantError(t, err, hostapi.CodeInternal)
	a, err := do(t.Context(), need)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(set)
	if want := strings.Repeat(a.Values["password"]+"\n", 3); string(b) != want {
		t.Errorf("set %s, answered %s", b, a.Values["password"])
	}
}

func TestPort(t *testing.T) {
	t.Parallel()
	_, do := run(t, 0, settings("url", serve(t, "tcp", good)))
	if a, err := do(t.Context(), need); err != nil || len(a.Values["password"]) != 43 {
		t.Errorf("got %v, %v", a, err)
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	_, do := run(t, 0, settings("run", python(t, `json.dump({"error": {"kind": "denied", "message": "no domain example.org\x1b[2J", "retryAfter": 90}}, sys.stdout)`)))
	_, err := do(t.Context(), need)
	providertest.WantError(t, err, hostapi.Refused(hostapi.Denied))
	if e := hostapi.AsError(err); e.Message != "no domain example.org·[2J" || e.RetryAfter != 90 {
		t.Errorf("got %+v", e)
	}
}

// TestShared checks that a secret of several hosts is the same for all, and that none of them can
// replace it.
func TestShared(t *testing.T) {
	t.Parallel()
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	e.Grant(kit.ID("node/raishan"), need, kind, request)
	do := started(t, e, 0, settings("run", python(t, answers)))
	first, err := do(t.Context(), need)
	if err != nil {
		t.Fatal(err)
	}
	r := hostapi.Request{Need: need, Serial: providertest.Serial, Generation: 1, Body: kit.JSON(request)}
	second, err := e.Client(kit.ID("node/raishan")).Do(t.Context(), hostapi.Path(kind), r)
	if err != nil || second.Values["password"] != first.Values["password"] {
		t.Errorf("the other host has %v, %v", second, err)
	}
	r.Rotation = 1
	_, err = e.Client(kit.ID("node/raishan")).Do(t.Context(), hostapi.Path(kind), r)
	providertest.WantError(t, err, hostapi.CodeRotation)
	news := r
	news.Need = "mailbox-wiki-news" // of one host alone
	if _, err := e.Client(kit.ID("node/ursula")).Do(t.Context(), hostapi.Path(kind), news); err != nil {
		t.Error(err)
	}
}

// TestExpires checks that an answer that expires is the same for half of its lifetime, and another
// one afterwards.
func TestExpires(t *testing.T) {
	t.Parallel()
	_, do := run(t, 0, settings("run", python(t, `json.dump({"values": {"password": str(time.time_ns())}, "expires": int(time.time()) + 4}, sys.stdout)`)))
	first, err := do(t.Context(), need)
	if err != nil {
		t.Fatal(err)
	}
	again, err := do(t.Context(), need)
	if err != nil {
		t.Fatal(err)
	}
	same := again.Values["password"] == first.Values["password"] && again.Expires == first.Expires
	if half := time.Unix(first.Expires-2, 0); !same && time.Now().Before(half) {
		t.Errorf("at once: got %v after %v", again, first)
	}
	kit.Succeeds(t, "another answer", func() error {
		later, err := do(t.Context(), need)
		if err == nil && later.Expires <= first.Expires {
			err = fmt.Errorf("got %v after %v", later, first)
		}
		return err
	})
}

func TestCompile(t *testing.T) {
	k := own.New(own.Config{Name: kind})
	for text, want := range map[string]string{
		`{"run":"/bin/true","values":["a"]}`:                  "",
		`{"url":"unix:/run/a","values":["a"]}`:                "",
		`{"url":"http://[::1]:80/a","values":["a"]}`:          "",
		`{"values":["a"]}`:                                    "an executable to run or a URL",
		`{"run":"/a","url":"unix:/a","values":["a"]}`:         "one of them",
		`{"run":"a","values":["a"]}`:                          "absolute path",
		`{"run":"/a","values":[]}`:                            "values",
		`{"url":"http://192.0.2.1:80/","values":["a"]}`:       "in clear",
		`{"url":"http://localhost:80/","values":["a"]}`:       "in clear",
		`{"url":"https://127.0.0.1:80/","values":["a"]}`:      "in clear",
		`{"url":"unix:a","values":["a"]}`:                     "in clear",
		`{"run":"/a","values":["a"],"environment":{"A":"b"}}`: "environment",
	} {
		p := document.Policy{Host: "drhorrible", Kinds: map[string]json.RawMessage{kind: json.RawMessage(text)}}
		if _, err := k.Compile(p); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want …%s…", text, err, want)
		}
	}
	p := document.Policy{Host: "drhorrible", Kinds: map[string]json.RawMessage{kind: json.RawMessage(`{"run":"/a","values":["a"]}`)},
		Grants: []document.Grant{{Kind: kind, Need: need, Request: kit.JSON(map[string]any{"service": kit.ID("node/a"), "request": map[string]any{}})}}}
	if _, err := k.Compile(p); err == nil || !strings.Contains(err.Error(), "only a service") {
		t.Errorf("a node's need: %v", err)
	}
}
