package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/kit/providertest"
)

var (
	alice, bob, ursula = kit.ID("user/alice"), kit.ID("user/bob"), kit.ID("node/ursula")
	elm                = kit.ID("node/elm") // joins
	service            = kit.ID("service/drhorrible/" + spiffe.ControlService)
)

const name = "florete-control.drhorrible.demo.flor.rete"

// env is a config provider. Operator alice may write to it, and bob may read.
type env struct {
	*providertest.Env
	t      *testing.T
	key    signature.SecretKey
	leo    ssh.Signer // key of leo, who approves requests for the role oncall
	socket string
	beside map[string]*providertest.Env // by kind
	logs   logs
}

func start(t *testing.T) *env {
	t.Helper()
	return startWith(t, nil)
}

// startWith starts the API; others starts the processes of other kinds, with sockets in a directory.
func startWith(t *testing.T, others func(e *env, run, account string)) *env {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	e := &env{Env: providertest.NewEnv(t, "ursula"), t: t, key: kit.SigningKey("demo-1"), leo: kit.NewHostKey(), socket: filepath.Join(t.TempDir(), "control.sock")}
	e.Policy.Trust.SigningKeys = []string{e.key.ToPublicKey().String()}
	e.Policy.Operators = []document.Operator{{ID: alice, Access: document.AccessWrite}, {ID: bob, Access: document.AccessRead}}
	e.Policy.Requests = map[string]document.RequestPolicy{"oncall": {
		By: []spiffe.ID{alice, bob}, Most: 4, Hosts: []string{"elm"}, Approvers: []document.Approver{kit.Approver(kit.ID("user/leo"), e.leo)},
	}}
	e.Policy.Devices = append(e.Policy.Devices, document.Device{ID: elm, Joins: true})
	e.Logged = true
	run := t.TempDir()
	if others != nil {
		others(e, run, me.Username)
	}
	e.Grant(ursula, "config-documents", "config", struct{}{})
	e.Runs("config", struct{}{}, func(p *providertest.Env) server.AnyKind {
		log := slog.New(slog.NewTextHandler(t.Output(), nil))
		return (&distribution.Settings{Socket: e.socket, Forwarder: me.Username, Run: run}).Kind(server.Process{
			Dir: p.Dir, Store: p.Store, Policies: p.Policies, Audit: server.NewAudit(p.Store, log), Log: p.Log, Logger: log,
		})
	})
	e.Start()
	e.until("a socket", func() bool { return e.dial() == nil })
	return e
}

func (e *env) until(what string, holds func() bool) {
	e.t.Helper()
	kit.Eventually(e.t, what, holds)
}

func (e *env) dial() error {
	c, err := net.Dial("unix", e.socket)
	if err == nil {
		c.Close()
	}
	return err
}

// as returns the forwarder's way of calling.
func (e *env) as() agenttest.Announced {
	return agenttest.Announced{Socket: e.socket, Service: service}
}

// do sends a request of a caller.
func (e *env) do(caller spiffe.ID, r *http.Request) (int, []byte) {
	e.t.Helper()
	return e.as().Do(e.t, caller, r)
}

func (e *env) request(method, path string, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(e.t.Context(), method, "http://"+name+path, body)
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

// answer decodes the answer to a caller to v.
func (e *env) answer(caller spiffe.ID, method, path string, body io.Reader, v any) {
	e.t.Helper()
	status, b := e.do(caller, e.request(method, path, body))
	if status != http.StatusOK {
		e.t.Fatalf("%s %s: %d %s", method, path, status, b)
	}
	if err := json.Unmarshal(b, v); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) text(serial int64, note string) *bytes.Buffer { return e.encode(e.tree(serial, note)) }

func (e *env) tree(serial int64, note string) archive.SignedTree {
	return providertest.Tree(e.key, serial, note, "ursula")
}

func (e *env) encode(tree archive.SignedTree) *bytes.Buffer {
	var b bytes.Buffer
	if err := tree.Encode(&b); err != nil {
		e.t.Fatal(err)
	}
	return &b
}

// acts returns the audit rows about callers of the API.
func (e *env) acts() (rows []server.Row) {
	for _, r := range e.Rows() {
		if r.Kind == control.Kind && r.Caller != "" {
			rows = append(rows, r)
		}
	}
	return rows
}

// An operator publishes, reads the served version, and rolls back. Each act is in the audit log.
func TestPublish(t *testing.T) {
	e := start(t)
	var p control.Published
	e.answer(alice, "POST", "/v1/publish", e.text(1000, "one"), &p)
	if !p.Changed || p.Version.Serial != 1000 || p.Version.Hosts != 1 {
		t.Errorf("got %+v", p)
	}
	first := p.Version
	e.answer(alice, "POST", "/v1/publish", e.text(1000, "one"), &p)
	if p.Changed {
		t.Error("the same again changed something")
	}
	e.answer(alice, "POST", "/v1/publish", e.text(1001, "two"), &p)
	second := p.Version

	// Documents of another version cannot be used to return to the first.
	status, b := e.do(alice, e.request("POST", "/v1/rollback/1000", e.text(1002, "two")))
	if status != http.StatusBadRequest || !strings.Contains(string(b), "are not those of serial 1000") {
		t.Errorf("got %d %s", status, b)
	}
	e.answer(alice, "POST", "/v1/rollback/1000", e.text(1002, "one"), &p)
	if p.Version.Content != first.Content || p.Version.Serial != 1002 {
		t.Errorf("got %+v", p)
	}

	var v control.Versions
	e.answer(bob, "GET", "/v1/versions", nil, &v)
	if len(v.Versions) != 3 || v.Versions[0] != p.Version || v.Versions[2] != first {
		t.Errorf("got %+v", v)
	}
	if status, b := e.do(bob, e.request("GET", "/v1/versions/1001", nil)); status != http.StatusOK || string(b) != e.text(1001, "two").String() {
		t.Errorf("got %d %s", status, b)
	}

	rows := e.acts()
	if len(rows) != 5 {
		t.Fatalf("got %+v", rows)
	}
	for i, want := range []struct {
		code          string
		outcome       server.Outcome
		before, after string
	}{
		{"publish", server.Granted, "serial 0, content ", "serial 1000, content " + first.Content},
		{"publish", server.Granted, "serial 1000, content " + first.Content, "serial 1000, content " + first.Content},
		{"publish", server.Granted, "serial 1000, content " + first.Content, "serial 1001, content " + second.Content},
		{"mismatch", "invalid", "", ""},
		{"rollback", server.Granted, "serial 1001, content " + second.Content, "serial 1002, content " + first.Content},
	} {
		r := rows[i]
		if r.Code != want.code || r.Outcome != want.outcome || r.Detail["before"] != want.before || r.Detail["after"] != want.after ||
			r.Caller != alice.String() || r.From != "192.0.2.7:4610" {
			t.Errorf("row %d: %+v, want %+v", i, r, want)
		}
	}
}

// TestRefused checks that refused requests change nothing and that the audit log has the refusal.
func TestRefused(t *testing.T) {
	e := start(t)
	foreign := func(header, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(header, value) }
	}
	for _, c := range []struct {
		name         string
		caller       spiffe.ID
		method, path string
		edit         func(*http.Request)
		status       int
		code         string
		message      string
	}{
		{"a reader that publishes", bob, "POST", "/v1/publish", nil, 403, hostapi.CodeNotGranted.Name, "user/bob may read here, want write: give it a role with group control-plane-write"},
		{"a reader that rolls back", bob, "POST", "/v1/rollback/1", nil, 403, hostapi.CodeNotGranted.Name, "user/bob may read here, want write"},
		{"a node without a role", ursula, "GET", "/v1/versions", nil, 403, hostapi.CodeNotGranted.Name, "node/ursula may do nothing here, want read: give it a role with group control-plane"},
		{"a service called alice", kit.ID("service/alice"), "GET", "/v1/versions", nil, 403, hostapi.CodeNotGranted.Name, "service/alice may do nothing here"},
		{"a page of another origin", alice, "POST", "/v1/publish", foreign("Origin", "http://evil.example"), 403, hostapi.CodeUntrusted.Name, `Origin "http://evil.example", want a page of ` + name},
		{"a page without an origin", alice, "POST", "/v1/publish", foreign("Origin", "null"), 403, hostapi.CodeUntrusted.Name, `Origin "null"`},
		{"an image on another page", alice, "GET", "/v1/versions", foreign("Sec-Fetch-Site", "cross-site"), 403, hostapi.CodeUntrusted.Name, `Sec-Fetch-Site "cross-site"`},
		{"another service of the domain", alice, "GET", "/v1/versions", foreign("Sec-Fetch-Site", "same-site"), 403, hostapi.CodeUntrusted.Name, `Sec-Fetch-Site "same-site"`},
		{"a name that leads here", alice, "GET", "/v1/versions", func(r *http.Request) { r.Host = "evil.example" }, 403, hostapi.CodeUntrusted.Name, `Host "evil.example", want ` + name},
		{"its address", alice, "GET", "/v1/versions", func(r *http.Request) { r.Host = "127.64.0.1" }, 403, hostapi.CodeUntrusted.Name, `Host "127.64.0.1"`},
		{"an act by GET", alice, "GET", "/v1/publish", nil, 400, hostapi.CodeUnknownMethod.Name, `GET "/v1/publish": no such endpoint`},
		{"another path", alice, "GET", "/", nil, 400, hostapi.CodeUnknownMethod.Name, "no such endpoint"},
		{"no serial", alice, "GET", "/v1/versions/newest", nil, 400, hostapi.CodeMalformed.Name, `serial "newest"`},
		{"a version that is gone", alice, "GET", "/v1/versions/7", nil, 400, hostapi.CodeMissing.Name, "serial 7, want one that /v1/versions has"},
		{"a long page", bob, "GET", "/v1/hosts?limit=1000", nil, 400, hostapi.CodeMalformed.Name, `limit "1000", want 1 to 100`},
		{"no documents", alice, "POST", "/v1/publish", nil, 400, hostapi.CodeMalformed.Name, "documents: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.t = t
			before := len(e.acts())
			r := e.request(c.method, c.path, nil)
			if c.method == "POST" && c.name != "no documents" {
				r = e.request(c.method, c.path, e.text(1000, "one"))
			}
			if c.edit != nil {
				c.edit(r)
			}
			status, b := e.do(c.caller, r)
			var refusal hostapi.Error
			if err := json.Unmarshal(b, &refusal); err != nil || status != c.status || refusal.Code != c.code || !strings.Contains(refusal.Message, c.message) {
				t.Errorf("got %d %s", status, b)
			}
			rows := e.acts()
			if len(rows) != before+1 || rows[before].Caller != c.caller.String() || rows[before].Code != c.code || rows[before].From != "192.0.2.7:4610" {
				t.Errorf("rows %+v", rows[before:])
			}
		})
	}
	e.t = t
	var v control.Versions
	if e.answer(alice, "GET", "/v1/versions", nil, &v); len(v.Versions) != 0 {
		t.Errorf("published: %+v", v)
	}
}

// Documents that are not signed by a key that the policy pins, or are older, are refused.
func TestDocumentsAreVerified(t *testing.T) {
	e := start(t)
	e.answer(alice, "POST", "/v1/publish", e.text(1000, "one"), &control.Published{})
	other := providertest.Tree(kit.SigningKey("other-1"), 1001, "one", "ursula")
	for name, text := range map[string]*bytes.Buffer{
		"does not verify": e.encode(other),
		"hosts never go":  e.text(999, "one"),
		"same serial":     e.text(1000, "two"),
	} {
		if status, b := e.do(alice, e.request("POST", "/v1/publish", text)); status != http.StatusBadRequest || !strings.Contains(string(b), name) {
			t.Errorf("%s: got %d %s", name, status, b)
		}
	}
	var v control.Versions
	if e.answer(alice, "GET", "/v1/versions", nil, &v); len(v.Versions) != 1 {
		t.Errorf("published: %+v", v)
	}
}

// The removal of a role takes effect with the next request, even on an open connection.
func TestPolicyIsReadAnew(t *testing.T) {
	e := start(t)
	client := http.Client{Transport: &http.Transport{
		MaxConnsPerHost: 1,
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return e.as().Dial(alice) },
	}}
	status := func() int {
		answer, err := client.Do(e.request("POST", "/v1/publish", e.text(1000, "one")))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	if got := status(); got != http.StatusOK {
		t.Fatal(got)
	}
	e.Policy.Operators[0].Access = document.AccessRead
	e.Publish(providertest.Serial + 1)
	// A look at the policy a moment ago may have been before that.
	e.until("publishing to be refused", func() bool { return status() != http.StatusOK })
	var v control.Versions
	e.answer(alice, "GET", "/v1/versions", nil, &v)
	e.Policy.Operators = nil
	e.Publish(providertest.Serial + 2)
	e.until("reading to be refused", func() bool {
		got, _ := e.do(alice, e.request("GET", "/v1/versions", nil))
		return got == http.StatusForbidden
	})
}

// A caller that stalls in the middle of a publication delays no other caller.
func TestStalledCaller(t *testing.T) {
	e := start(t)
	c, err := e.as().Dial(alice)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text := e.text(1000, "one").String()
	if _, err := fmt.Fprintf(c, "POST /v1/publish HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", name, len(text), text[:len(text)/2]); err != nil {
		t.Fatal(err)
	}
	var p control.Published
	if e.answer(alice, "POST", "/v1/publish", e.text(1001, "two"), &p); p.Version.Serial != 1001 {
		t.Errorf("got %+v", p)
	}
}

// A restart serves again, at a socket that another process left.
func TestRestart(t *testing.T) {
	e := start(t)
	e.answer(alice, "POST", "/v1/publish", e.text(1000, "one"), &control.Published{})
	e.Restart()
	e.until("a socket", func() bool { return e.dial() == nil })
	var v control.Versions
	if e.answer(alice, "GET", "/v1/versions", nil, &v); len(v.Versions) != 1 {
		t.Errorf("got %+v", v)
	}
}
