package oidc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit/providertest"
)

// contract is the API of a server, kept in memory. It follows the handlers of the release that the
// README names, since neither server can be built here. It shows that the handlers accept the
// requests, not that the servers behave as promised.
type contract struct {
	t     *testing.T
	url   string
	mux   *http.ServeMux
	allow func(http.Header) bool // reports whether a request has the token

	mu    sync.Mutex
	calls []string         // method and path of each call
	fails func(string) int // returns a status that replaces the answer to a call; nil for none
}

// answerLost is the status of a call that the server executes, but whose answer is lost.
const answerLost = http.StatusGatewayTimeout

const registrationToken = "token-of-an-administrator"

func newContract(t *testing.T, allow func(http.Header) bool) *contract {
	c := &contract{t: t, mux: http.NewServeMux(), allow: allow}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

func (c *contract) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := r.Method + " " + r.URL.Path
	c.calls = append(c.calls, call)
	if c.fails != nil {
		if status := c.fails(call); status != 0 {
			if status == answerLost {
				c.mux.ServeHTTP(httptest.NewRecorder(), r)
			}
			w.WriteHeader(status)
			return
		}
	}
	if !c.allow(r.Header) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// handle answers calls of a pattern with a status and a value as JSON. The server refuses bodies
// that are not JSON.
func (c *contract) handle(pattern string, answer func(r *http.Request, body []byte) (int, any)) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		body := must(io.ReadAll(r.Body))
		if len(body) > 0 && r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusUnsupportedMediaType)
			return
		}
		status, v := answer(r, body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status != http.StatusNoContent {
			_ = json.NewEncoder(w).Encode(v)
		}
	})
}

// strictly decodes a body and refuses unknown fields: a field that the server ignores is a mistake
// in our request.
func strictly(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// taken returns the calls that changed something since taken was last called.
func (c *contract) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.DeleteFunc(c.calls, func(s string) bool { return strings.HasPrefix(s, "GET ") })
	c.calls = nil
	return all
}

// failing answers calls with the status that a function returns for them.
func (c *contract) failing(f func(call string) int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails = f
}

// registers returns a provider that registers outline as a client there.
func (c *contract) registers(registrar string, want func(*Request)) *fixture {
	c.t.Helper()
	f := prepared(c.t)
	f.more = fmt.Sprintf(`,"registration":%q,"registrar":%q`, c.url, registrar)
	f.want = want
	f.grant(webCallback)
	if err := os.WriteFile(filepath.Join(f.dir, "registration-token"), []byte(registrationToken+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	f.start()
	return f
}

// conforms runs the conformance tests of all kinds against this contract.
func (c *contract) conforms(registrar string) {
	token := filepath.Join(c.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(registrationToken), 0o600); err != nil {
		c.t.Fatal(err)
	}
	providertest.Run(c.t, providertest.Suite{
		Kind: Name, Need: "oidc-outline", Secret: []string{"clientSecret"}, Rotates: "clientSecret",
		Settings: map[string]any{"issuer": issuerURL, "registration": c.url, "registrar": registrar},
		Make: func(e *providertest.Env) server.AnyKind {
			return server.Any(externalAnswers{New(Config{Store: e.Store, Key: e.Key, Policy: server.Compiled[Policy](e.Policies), RegistrationToken: token})})
		},
		Request: Request{Issuer: issuerURL, Service: outline, RedirectURIs: []string{webCallback}},
	})
}
