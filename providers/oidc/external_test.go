package oidc

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
	"github.com/florete/florete/tests/program"
)

const webCallback = "https://outline.example.org/callback"

// glewlwyd is an external issuer.
type glewlwyd struct {
	t    *testing.T
	url  string
	http *http.Client // client of the administrator
}

func startGlewlwyd(t *testing.T) *glewlwyd {
	t.Helper()
	issuer := program.Require(t, "glewlwyd")
	root, words := issuer.Root, issuer.Command
	dir := t.TempDir()
	f, err := os.Open(root + "/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz")
	if err != nil {
		t.Skip("NOT RUN: nobody registers at a provider of others: of the package glewlwyd the schema of its database is not here, as where documentation is left out:", err)
	}
	defer f.Close()
	db := must(sql.Open("sqlite", filepath.Join(dir, "g.db")))
	if _, err := db.Exec(string(must(io.ReadAll(must(gzip.NewReader(f)))))); err != nil {
		t.Fatal(err)
	}
	db.Close()
	address := providertest.Loopback()
	host, port, _ := strings.Cut(address, ":")
	g := &glewlwyd{t: t, url: "http://" + address, http: &http.Client{Jar: must(cookiejar.New(nil)), Timeout: kit.Patience}}
	var modules strings.Builder
	for _, m := range []string{"user", "user_middleware", "client", "user_auth_scheme", "plugin"} {
		fmt.Fprintf(&modules, "%s_module_path=\"%s/usr/lib/glewlwyd/%s\"\n", m, root, strings.TrimPrefix(m, "user_auth_"))
	}
	config := filepath.Join(dir, "conf")
	settings := fmt.Sprintf("port=%s\nbind_address=%q\nexternal_url=%q\nlogin_url=\"login.html\"\napi_prefix=\"api\"\nstatic_files_path=%q\nlog_mode=\"console\"\nlog_level=\"INFO\"\n"+
		"cookie_secure=0\nsession_key=\"S\"\nadmin_scope=\"g_admin\"\nprofile_scope=\"g_profile\"\nhash_algorithm=\"SHA512\"\n%sdatabase={ type=\"sqlite3\"; path=%q; };\n",
		port, host, g.url, dir, modules.String(), filepath.Join(dir, "g.db"))
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(words[0], append(words[1:], "--config-file="+config)...)
	log := must(os.Create(filepath.Join(dir, "log")))
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	kit.Succeeds(t, "glewlwyd", func() error {
		status, _, err := g.call("POST", "/api/auth/", `{"username":"admin","password":"password"}`)
		if err != nil || status != 200 {
			return fmt.Errorf("status %d, %w\n%s", status, err, must(os.ReadFile(log.Name())))
		}
		return nil
	})
	plugin := `{"module":"oidc","name":"oidc","display_name":"oidc","order_rank":0,"parameters":{"iss":"` + g.url + `/api/oidc","jwt-type":"sha","jwt-key-size":"256",
		"key":"a secret of thirty-two bytes or so","access-token-duration":3600,"refresh-token-duration":3600,"code-duration":600,"refresh-token-rolling":true,"allow-non-oidc":true,
		"auth-type-code-enabled":true,"auth-type-client-enabled":true,"auth-type-refresh-enabled":true,"auth-type-token-enabled":false,"auth-type-id-token-enabled":true,
		"auth-type-none-enabled":true,"auth-type-password-enabled":false,"scope":[],"additional-parameters":[],"claims":[],"register-client-allowed":true,
		"register-client-auth-scope":[],"register-client-credentials-scope":["openid"],"register-client-management-allowed":true}}`
	if status, b, err := g.call("POST", "/api/mod/plugin", plugin); err != nil || status != 200 {
		t.Fatalf("glewlwyd: %d %s %v", status, b, err)
	}
	return g
}

func (g *glewlwyd) call(method, path, body string) (int, []byte, error) {
	req := must(http.NewRequest(method, g.url+path, strings.NewReader(body)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := g.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}

// clients returns the IDs of all registered clients. Glewlwyd only disables deleted clients.
func (g *glewlwyd) clients() (ids []string) {
	g.t.Helper()
	var all []struct {
		ID      string `json:"client_id"`
		Enabled bool   `json:"enabled"`
	}
	if status, b, err := g.call("GET", "/api/client/?limit=1000", ""); err != nil || json.Unmarshal(b, &all) != nil {
		g.t.Fatalf("%d %s %v", status, b, err)
	}
	for _, c := range all {
		if c.Enabled {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// accepts reports whether a client can authenticate. The presented code is invalid in any case.
func (g *glewlwyd) accepts(values map[string]string) bool {
	g.t.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "code": {"none"}, "redirect_uri": {webCallback}}
	req := must(http.NewRequest("POST", g.url+"/api/oidc/token", strings.NewReader(form.Encode())))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(values["clientId"], values["clientSecret"])
	resp := must(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	return bytes.Contains(must(io.ReadAll(resp.Body)), []byte("invalid_code"))
}

func (g *glewlwyd) settings() map[string]any {
	return map[string]any{"issuer": issuerURL, "registration": g.url + "/api/oidc/register"}
}

func TestExternalConformance(t *testing.T) {
	t.Parallel()
	g := startGlewlwyd(t)
	providertest.Run(t, providertest.Suite{
		Kind: Name, Need: "oidc-outline", Settings: g.settings(), Secret: []string{"clientSecret"}, Rotates: "clientSecret",
		Make: func(e *providertest.Env) server.AnyKind {
			return server.Any(externalAnswers{New(Config{Store: e.Store, Key: e.Key, Policy: server.Compiled[Policy](e.Policies)})})
		},
		Request: Request{Issuer: issuerURL, Service: outline, RedirectURIs: []string{webCallback}},
	})
}

// externalAnswers is the kind without its background task.
type externalAnswers struct{ server.Rotator[*Policy] }

// registers returns a provider that registers outline as a client of an external issuer.
func registers(t *testing.T, g *glewlwyd) *fixture {
	f := prepared(t)
	f.more = `,"registration":"` + g.url + `/api/oidc/register"`
	f.grant(webCallback)
	f.start()
	return f
}

// fetches returns the values that the host of outline has after a fetch.
func (f *fixture) fetches() (map[string]string, error) {
	f.t.Helper()
	policy := f.inForce()
	g := f.policy.Grants[0]
	d, err := f.p.Answer(f.t.Context(), policy, server.Call{Caller: g.Caller, Grant: g, Now: time.Now()})
	if err == nil {
		_, err = f.db.Commit(f.t.Context(), store.Txn{If: d.If, Then: d.Then})
	}
	return d.Answer.Values, err
}

func (f *fixture) sweeps(after time.Duration) {
	f.t.Helper()
	if err := f.p.sweepExternal(f.t.Context(), time.Now().Add(after)); err != nil {
		f.t.Fatal(err)
	}
}

func TestExternal(t *testing.T) {
	t.Parallel()
	g := startGlewlwyd(t)
	f := registers(t, g)
	first := must(f.fetches())
	if !g.accepts(first) || g.accepts(map[string]string{"clientId": first["clientId"], "clientSecret": "wrong"}) {
		t.Fatal("the issuer does not accept what the host has, or anything")
	}
	if again := must(f.fetches()); again["clientId"] != first["clientId"] {
		t.Error("the same request registers another client")
	}

	// A change makes another client. The former client works until its time is over.
	f.grant(webCallback, webCallback+"2")
	second := must(f.fetches())
	if second["clientId"] == first["clientId"] || !g.accepts(first) || !g.accepts(second) {
		t.Fatal("of two clients in an overlap one does not work")
	}
	f.sweeps(formerLives - time.Minute)
	if !g.accepts(first) {
		t.Error("the former one has ended too soon")
	}
	f.sweeps(formerLives + time.Minute)
	if g.accepts(first) || !g.accepts(second) {
		t.Error("the former one has not ended, or the one in use has")
	}
	f.rotate(2)
	third := must(f.fetches())
	if third["clientSecret"] == second["clientSecret"] {
		t.Error("a higher generation has the same secret")
	}

	// No host is granted the client any more.
	f.grant()
	f.sweeps(0)
	if ids := g.clients(); len(ids) != 0 {
		t.Errorf("%v are registered, want none", ids)
	}
	if e := must(f.p.readExternal(t.Context(), "outline.demo.flor.rete")); e.modified != 0 {
		t.Errorf("kept %+v", e)
	}
}

// A process that ended between registering a client and storing it reports this, and registers a
// client that works. Stored clients are kept.
func TestExternalCutOff(t *testing.T) {
	t.Parallel()
	g := startGlewlwyd(t)
	f := registers(t, g)
	first := must(f.fetches())
	name := "outline.demo.flor.rete"
	e := must(f.p.readExternal(t.Context(), name))
	e.Mark = "mark-of-before"
	must(f.p.writeExternal(t.Context(), name, e))
	must(endpoint{url: f.inForce().registration}.register(t.Context(), name, e.Mark, f.inForce().clients[name], nil))
	f.grant(webCallback, webCallback+"2")
	second := must(f.fetches())
	if !g.accepts(first) || !g.accepts(second) {
		t.Error("what hosts have does not work")
	}
	f.mu.Lock()
	logs := f.logs.String()
	f.mu.Unlock()
	if !strings.Contains(logs, `"software_version":"mark-of-before"`) {
		t.Errorf("the log does not name the client that is left:\n%s", logs)
	}
	f.grant()
	f.sweeps(0)
	if ids := g.clients(); len(ids) != 1 || slices.Contains(ids, first["clientId"]) || slices.Contains(ids, second["clientId"]) {
		t.Errorf("%v are registered, want the one that was cut off", ids)
	}
}

// If somebody deletes a client by hand, or replaces its token, the provider continues.
func TestExternalDeletedByHand(t *testing.T) {
	t.Parallel()
	g := startGlewlwyd(t)
	f := registers(t, g)
	first := must(f.fetches())
	if status, b, err := g.call("DELETE", "/api/client/"+first["clientId"], ""); err != nil || status != 200 {
		t.Fatalf("%d %s %v", status, b, err)
	}
	f.grant()
	f.sweeps(0)
	if e := must(f.p.readExternal(t.Context(), "outline.demo.flor.rete")); e.modified != 0 {
		t.Errorf("kept %+v", e)
	}
}

func TestExternalRefused(t *testing.T) {
	t.Parallel()
	f := prepared(t)
	f.more = `,"registration":"http://` + providertest.Loopback() + `/register"`
	f.grant(webCallback)
	f.start()
	if _, err := f.fetches(); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v, want that nobody answers", err)
	}
	for more, want := range map[string]string{
		`,"registration":"http://op.example.org/register"`:            "want an https address",
		`,"registration":"ftp://op.example.org"`:                      "want an https address",
		`,"registration":"https://op.example.org","registrar":"okta"`: `"okta": want one of`,
		`,"registrar":"pocket-id"`:                                    "want registration beside it",
		`,"registration":"https://op.example.org/register","upstream":{"a":{"issuer":"https://a.example.org","clientId":"a","title":"a"}}`: "want neither ldap nor upstream",
	} {
		policy := f.policy
		policy.Kinds = map[string]json.RawMessage{Name: json.RawMessage(`{"issuer":"` + issuerURL + `"` + more + `}`)}
		if _, err := compile(policy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", more, err, want)
		}
	}
}

// The URL of an external issuer may have a path, which must match, byte for byte, the URL at which
// services find its documents.
func TestExternalIssuer(t *testing.T) {
	t.Parallel()
	const realm = "https://op.example.org/realms/a/"
	k := newKanidmContract(t)
	f := prepared(t)
	request := Request{Issuer: realm, Service: outline, RedirectURIs: []string{webCallback}}
	registered := make(chan metadata, 1)
	op := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m metadata
		must(0, json.NewDecoder(r.Body).Decode(&m))
		registered <- m
		w.WriteHeader(http.StatusCreated)
		must(io.WriteString(w, `{"client_id":"a","client_secret":"b"}`))
	}))
	defer op.Close()
	policy := func(more string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.policy.Kinds = map[string]json.RawMessage{Name: json.RawMessage(`{"issuer":"` + realm + `"` + more + `}`)}
		f.policy.Grants[0].Request = must(json.Marshal(request))
	}
	policy(`,"registration":"` + op.URL + `/realms/a/register"`)
	f.start()
	if v := must(f.fetches()); v["issuer"] != realm || v["clientId"] != "a" || (<-registered).RedirectURIs[0] != webCallback {
		t.Errorf("delivered %v", v)
	}
	must(0, os.WriteFile(filepath.Join(f.dir, "registration-token"), []byte(registrationToken), 0o600))
	policy(`,"registrar":"kanidm","registration":"` + k.url + `"`)
	if v := must(f.fetches()); v["issuer"] != "https://op.example.org/realms/a/oauth2/openid/"+v["clientId"] {
		t.Errorf("delivered %v", v)
	}
	f.stop()
	policy("")
	if _, err := compile(f.policy); err == nil || !strings.Contains(err.Error(), "nothing after") {
		t.Errorf("%v, want that pages of the own issuer are at no path", err)
	}
	for _, issuer := range []string{realm + "?a=b", "ftp://op.example.org", "https://a@op.example.org/x"} {
		if err := validIssuer(issuer, true); err == nil || !strings.Contains(err.Error(), "without query") {
			t.Errorf("%s: %v", issuer, err)
		}
	}
}
