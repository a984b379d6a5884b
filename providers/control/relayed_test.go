package control_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/secret"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/controltest"
	"github.com/florete/florete/tests/kit/providertest"
)

// others are the processes of the kinds file and secret on the same host.
func (e *env) others(run, account string) {
	e.beside = controltest.Others(e.t, e.Env, run, account, slog.New(slog.NewTextHandler(&e.logs, nil)))
}

// logs collects the log lines of processes.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), part)
}

func body(f file.File) io.Reader { return bytes.NewReader(kit.JSON(f)) }

// TestFiles checks that an operator can send a file, which the host receives, that a caller with
// read access cannot send files, and that each act has a row in the log of the process that stores
// the file.
func TestFiles(t *testing.T) {
	e := startWith(t, (*env).others)
	const first, second = "correct horse", "battery staple"
	b := e.beside[file.Name]
	request := hostapi.Request{Need: "file-wiki-smtp", Serial: providertest.Serial, Generation: 1, Body: kit.JSON(controltest.File)}
	_, err := b.Client(ursula).Do(t.Context(), hostapi.Path(file.Name), request)
	providertest.WantError(t, err, hostapi.CodeMissing)

	send := func(ref, content string) io.Reader { return body(file.File{Ref: ref, Content: &content}) }
	var sent file.File
	e.answer(alice, "POST", "/v1/files", send("wiki/smtp", first), &sent)
	if sent.By != alice || sent.Content != nil || sent.Sent.IsZero() {
		t.Errorf("got %+v", sent)
	}
	a, err := b.Client(ursula).Do(t.Context(), hostapi.Path(file.Name), request)
	if err != nil || a.Values["content"] != first {
		t.Fatalf("the host has %v, %v", maps.Keys(a.Values), err)
	}

	for name, c := range map[string]struct {
		caller spiffe.ID
		body   io.Reader
		status int
		part   string
	}{
		"who may read":       {bob, send("wiki/smtp", second), http.StatusForbidden, "control-plane-write"},
		"a stranger":         {kit.ID("user/mallory"), send("wiki/smtp", second), http.StatusForbidden, "may do nothing"},
		"what nobody reads":  {alice, send("wiki/stmp", second), http.StatusBadRequest, "no service in the policy of this provider has it"},
		"a path":             {alice, send("../smtp", second), http.StatusBadRequest, "want the name of a file"},
		"too long":           {alice, send("wiki/smtp", second+strings.Repeat("x", 128<<10)), http.StatusBadRequest, "want at most 131072"},
		"far too long":       {alice, send("wiki/smtp", second+strings.Repeat("x", 795_000)), http.StatusBadRequest, "request body too large"},
		"no text":            {alice, strings.NewReader(`{"ref":"wiki/smtp","content":"` + second + "\xff" + `"}`), http.StatusBadRequest, "not of the form"},
		"an unknown field":   {alice, strings.NewReader(`{"ref":"wiki/smtp","` + second + `":1}`), http.StatusBadRequest, "not of the form"},
		"no JSON":            {alice, strings.NewReader(second), http.StatusBadRequest, "not of the form"},
		"an unknown content": {alice, strings.NewReader(`{"ref":"wiki/smtp","content":["` + second + `"]}`), http.StatusBadRequest, "not of the form"},
	} {
		status, answer := e.do(c.caller, e.request("POST", "/v1/files", c.body))
		if status != c.status || !strings.Contains(string(answer), c.part) || strings.Contains(string(answer), second) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	var list file.Sent
	e.answer(bob, "GET", "/v1/files", nil, &list)
	if len(list.Files) != 1 || list.Files[0].Ref != "wiki/smtp" || list.Files[0].By != alice || list.Files[0].Content != nil {
		t.Errorf("got %+v", list)
	}

	var acts []server.Row
	for _, r := range b.Rows() {
		if r.Kind == announced.OperatorKind && r.Outcome == server.Granted {
			acts = append(acts, r)
		}
		if text := string(kit.JSON(r)); strings.Contains(text, first) || strings.Contains(text, second) {
			t.Errorf("a row has a secret: %s", text)
		}
	}
	if len(acts) != 1 || acts[0].Code != file.CodeSet || acts[0].Caller != alice.String() || acts[0].From != "192.0.2.7:4610" || acts[0].Detail["ref"] != "wiki/smtp" {
		t.Errorf("rows of acts: %+v", acts)
	}
	refused := 0
	for _, r := range e.acts() {
		if r.Code == hostapi.CodeNotGranted.Name {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d refusals are on record, want 2", refused)
	}
	if e.logs.has(first) || e.logs.has(second) || !e.logs.has("wiki/smtp") {
		t.Error("the log has a secret, or nothing at all")
	}
	unreadable(t, b.Dir, first)

	// A replaced file is fetched with the next generation, and a removed file is gone.
	e.answer(alice, "POST", "/v1/files", send("wiki/smtp", second), &sent)
	if a, err := b.Client(ursula).Do(t.Context(), hostapi.Path(file.Name), request); err != nil || a.Values["content"] != first {
		t.Errorf("the same request has another answer, %v", err)
	}
	b.Rotate(ursula, "file-wiki-smtp", 2)
	b.Publish(providertest.Serial + 1)
	request.Generation = 2
	e.until("the new policy", func() bool {
		a, err := b.Client(ursula).Do(t.Context(), hostapi.Path(file.Name), request)
		return err == nil && a.Values["content"] == second
	})
	e.answer(alice, "POST", "/v1/files", body(file.File{Ref: "wiki/smtp"}), &sent)
	if e.answer(bob, "GET", "/v1/files", nil, &list); len(list.Files) != 0 {
		t.Errorf("got %+v", list)
	}
	unreadable(t, b.Dir, second)
}

// unreadable fails where a state has a secret.
func unreadable(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSecrets checks that callers with read access get public halves, and that nobody gets more.
func TestSecrets(t *testing.T) {
	e := startWith(t, (*env).others)
	var all secret.Publics
	if e.answer(bob, "GET", "/v1/secrets", nil, &all); len(all.Secrets) != 0 {
		t.Errorf("before any was made: %+v", all)
	}
	b := e.beside[secret.Name]
	a, err := b.Client(ursula).Do(t.Context(), hostapi.Path(secret.Name), hostapi.Request{
		Need: "secret-node-mesh", Serial: providertest.Serial, Generation: 1, Body: kit.JSON(controltest.Mesh),
	})
	if err != nil {
		t.Fatal(err)
	}
	status, text := e.do(bob, e.request("GET", "/v1/secrets", nil))
	if public := strings.TrimSpace(a.Values["public"]); status != http.StatusOK || !strings.Contains(string(text), public) || strings.Contains(string(text), strings.TrimSpace(a.Values["secret"])) {
		t.Errorf("%d %s, want %s", status, text, public)
	}
	if status, text := e.do(kit.ID("user/mallory"), e.request("GET", "/v1/secrets", nil)); status != http.StatusForbidden {
		t.Errorf("a stranger: %d %s", status, text)
	}
}

// TestNotRelayed checks that the answer says so if the other process is away or on another host.
func TestNotRelayed(t *testing.T) {
	e := startWith(t, (*env).others)
	e.beside[secret.Name].Stop()
	if status, text := e.do(bob, e.request("GET", "/v1/secrets", nil)); status != http.StatusServiceUnavailable || !strings.Contains(string(text), "does not answer here") {
		t.Errorf("%d %s", status, text)
	}
	delete(e.Policy.Kinds, secret.Name)
	delete(e.Policy.Provider, secret.Name)
	e.Publish(providertest.Serial + 1)
	kit.Succeeds(t, "the kind to be gone", func() error {
		status, text := e.do(bob, e.request("GET", "/v1/secrets", nil))
		if status == http.StatusBadRequest && strings.Contains(string(text), "does not provide secret") {
			return nil
		}
		return fmt.Errorf("%d %s", status, text)
	})
	var v control.Versions
	e.answer(bob, "GET", "/v1/versions", nil, &v)
}

// TestDecidesItself checks that the other process follows its own policy, not that of the process
// that relays.
func TestDecidesItself(t *testing.T) {
	e := startWith(t, (*env).others)
	b, content := e.beside[file.Name], "correct horse"
	b.Policy.Operators = document.Operators{{ID: alice, Access: document.AccessRead}}
	b.Publish(providertest.Serial + 1)
	e.until("the new policy", func() bool { return b.Policies.Newest().Operators.Access(alice, time.Now()) == document.AccessRead })
	status, text := e.do(alice, e.request("POST", "/v1/files", body(file.File{Ref: "wiki/smtp", Content: &content})))
	if status != http.StatusForbidden || !strings.Contains(string(text), "user/alice may read here, want write") {
		t.Errorf("%d %s", status, text)
	}
	refused := func(r server.Row) bool { return r.Code == hostapi.CodeNotGranted.Name && r.Caller == alice.String() }
	if rows := b.Rows(); !slices.ContainsFunc(rows, refused) {
		t.Errorf("no row of the refusal: %+v", rows)
	}
}
