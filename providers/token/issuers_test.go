package token

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/florete/florete/tests/kit"
)

// corp is an issuer whose answers a test sets, and which counts the requests.
type corp struct {
	*httptest.Server
	requests atomic.Int64
	key      jose.JSONWebKey
}

func newCorp(t *testing.T, answer func(c *corp, w http.ResponseWriter, r *http.Request)) *corp {
	c := &corp{key: jose.JSONWebKey{Key: kit.NewKey(), KeyID: "good", Algorithm: string(jose.ES256)}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		answer(c, w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// honest answers as a correct issuer does.
func honest(c *corp, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/keys" {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{c.key.Public()}})
		return
	}
	json.NewEncoder(w).Encode(map[string]string{"issuer": c.URL, "jwks_uri": c.URL + "/keys"})
}

// form returns a form with a token of the issuer, whose header names the given key ID.
func (c *corp) form(t *testing.T, key any, kid string) url.Values {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(s).Claims(map[string]any{"iss": c.URL, "aud": "ci", "sub": "1", "email": "alice@example.org", "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return url.Values{"subject_token": {token}, "subject_token_type": {TypeIDToken}}
}

// TestIssuerLeads checks that an issuer cannot make the provider connect to an address that only
// this host can reach, and that refusals contain nothing of the answer.
func TestIssuerLeads(t *testing.T) {
	const secret = "INTERNAL-SECRET"
	var reached atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		io.WriteString(w, secret)
	}))
	defer inside.Close()
	discovery := func(jwks string) func(*corp, http.ResponseWriter, *http.Request) {
		return func(c *corp, w http.ResponseWriter, _ *http.Request) {
			json.NewEncoder(w).Encode(map[string]string{"issuer": c.URL, "jwks_uri": jwks})
		}
	}
	for name, answer := range map[string]func(*corp, http.ResponseWriter, *http.Request){
		"its keys are elsewhere":                 discovery(inside.URL + "/latest/meta-data"),
		"its keys are at the host's other names": discovery(strings.Replace(inside.URL, "127.0.0.1", "localhost", 1)),
		"its keys are a file":                    discovery("file:///etc/passwd"),
		"its discovery is elsewhere": func(_ *corp, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, inside.URL, http.StatusFound)
		},
		"its keys are at a page that leads elsewhere": func(c *corp, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/keys" {
				http.Redirect(w, r, inside.URL, http.StatusFound)
				return
			}
			honest(c, w, r)
		},
		"it answers with something else": func(_ *corp, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, secret) },
		"it fails": func(_ *corp, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, secret)
		},
		"it is another": func(_ *corp, w http.ResponseWriter, _ *http.Request) {
			json.NewEncoder(w).Encode(map[string]string{"issuer": secret, "jwks_uri": inside.URL})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCorp(t, answer)
			e := start(t, acme(c.URL))
			status, got := e.exchange(wiki, "acme", c.form(t, c.key.Key, c.key.KeyID))
			if says := fmt.Sprint(got["error_description"]); status != http.StatusServiceUnavailable || strings.Contains(fmt.Sprint(got), secret) || !strings.Contains(says, "issuer corp: its keys cannot be read") {
				t.Errorf("%d %v", status, got)
			}
		})
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d requests reached what is inside", n)
	}
}

// TestIssuerIsLeftAlone checks that invented key IDs, and an issuer that fails or is slow, do not
// cause a request for each token.
func TestIssuerIsLeftAlone(t *testing.T) {
	refuse := func(_ *corp, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	for name, c := range map[string]struct {
		answer func(*corp, http.ResponseWriter, *http.Request)
		status int
		each   int64 // requests for the keys once
	}{
		"made up keys": {honest, http.StatusBadRequest, 2},
		"failing":      {refuse, http.StatusServiceUnavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			corp := newCorp(t, c.answer)
			tenant := acme(corp.URL)
			tenant.TokensPerMinute = 1000
			e := start(t, tenant)
			begun := time.Now()
			var all sync.WaitGroup
			for i := range 60 {
				all.Go(func() {
					if status, answer := e.exchange(wiki, "acme", corp.form(t, kit.NewKey(), fmt.Sprint("made-up-", i))); status != c.status {
						t.Errorf("%d %v", status, answer)
					}
				})
			}
			all.Wait()
			if n, most := corp.requests.Load(), c.each*(1+int64(time.Since(begun)/issuerRest)); n > most {
				t.Errorf("%d requests to the issuer, want %d at most", n, most)
			}
			if c.status == http.StatusBadRequest { // tokens with a known key still work
				if status, answer := e.exchange(wiki, "acme", corp.form(t, corp.key.Key, corp.key.KeyID)); status != http.StatusOK {
					t.Errorf("%d %v", status, answer)
				}
			}
		})
	}
	t.Run("slow", func(t *testing.T) {
		var now, most atomic.Int64
		release := make(chan struct{})
		corp := newCorp(t, func(c *corp, w http.ResponseWriter, r *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-release
			honest(c, w, r)
		})
		e := start(t, acme(corp.URL))
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if status, answer := e.exchange(wiki, "acme", corp.form(t, corp.key.Key, corp.key.KeyID)); status != http.StatusOK && status != http.StatusServiceUnavailable {
					t.Errorf("%d %v", status, answer)
				}
			})
		}
		kit.Eventually(t, "a request", func() bool { return corp.requests.Load() > 0 })
		kit.Settled(corp.requests.Load) // waits for further requests, if there are any
		close(release)
		all.Wait()
		if n := most.Load(); n != 1 {
			t.Errorf("%d requests at once", n)
		}
	})
}
