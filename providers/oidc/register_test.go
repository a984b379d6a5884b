package oidc

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

func TestSameAnswer(t *testing.T) {
	f := newFixture(t)
	first := f.register(1)
	want := map[string]string{"issuer": issuerURL, "clientId": "outline.demo.flor.rete", "clientSecret": first["clientSecret"]}
	if !maps.Equal(first, want) || len(first["clientSecret"]) != 43 {
		t.Errorf("answer is %v", first)
	}
	f.restart()
	d, err := f.decide(1)
	if err != nil || !maps.Equal(d.Answer.Values, first) {
		t.Errorf("the second answer is %v, %v, the first was %v", d.Answer.Values, err, first)
	}
	if len(d.Then) != 0 {
		t.Errorf("the second answer changes %v", d.Then)
	}
	for k, v := range d.Detail {
		if strings.Contains(v, first["clientSecret"]) {
			t.Errorf("audit detail %s tells the secret", k)
		}
	}
}

// Two simultaneous first requests register one client.
func TestOneRegistration(t *testing.T) {
	f := newFixture(t)
	a, errA := f.decide(1)
	b, errB := f.decide(2)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if _, err := f.db.Commit(t.Context(), store.Txn{If: b.If, Then: b.Then}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.db.Commit(t.Context(), store.Txn{If: a.If, Then: a.Then}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("generation 1 over generation 2: error is %v, want %v", err, store.ErrConflict)
	}
}

// A record of a generation that the policy does not grant ends no secret, and the next request
// replaces the record. A forged request could leave such a record if the provider believed it.
func TestPoisonedGeneration(t *testing.T) {
	const highest = 1<<63 - 1
	f := newFixture(t)
	first := f.register(1)
	poison := f.register(highest)
	signsIn := func(delivered map[string]string) error {
		s := f.service(delivered)
		_, err := s.Exchange(s.ctx(), s.signIn("state", "verifier"), oauth2.VerifierOption("verifier"))
		return err
	}
	f.rotate(1)
	if err := signsIn(first); err != nil {
		t.Errorf("the secret that the policy grants: %v", err)
	}
	refused(t, "the secret of another generation", signsIn(poison), "invalid_client")
	if got := f.register(1); !maps.Equal(got, first) {
		t.Errorf("the answer is %v, was %v", got, first)
	}
	r, _, err := f.p.clients.get(t.Context(), first["clientId"])
	if err != nil || r.Generation != 1 {
		t.Errorf("generation %d is on record, %v, want 1", r.Generation, err)
	}
}

// TestRedirectURIsFollowTheGrant checks that redirect URIs follow the current grant.
func TestRedirectURIsFollowTheGrant(t *testing.T) {
	f := newFixture(t)
	first := f.register(1)
	f.grant(callback + "/new")
	if got := f.register(1); !maps.Equal(got, first) {
		t.Errorf("with another redirect URI the answer is %v, was %v", got, first)
	}
	s := f.service(first)
	if p := s.begin("state", "verifier"); p.status != 400 {
		t.Errorf("old redirect URI: status %d", p.status)
	}
	s.RedirectURL = callback + "/new"
	if p := s.begin("state", "verifier"); p.form == nil {
		t.Errorf("new redirect URI: status %d: %s", p.status, p.text)
	}
}

func TestMalformed(t *testing.T) {
	for body, part := range map[string]string{
		`{"service":"spiffe://demo.flor/service/outline"}`:                                                                     "redirectURIs: none",
		`{"service":"spiffe://demo.flor/service/outline","redirectURIs":[]}`:                                                   "redirectURIs: none",
		`{"service":"spiffe://demo.flor/service/outline","redirectURIs":["/callback"]}`:                                        `"/callback"`,
		`{"service":"spiffe://demo.flor/service/outline","redirectURIs":["urn:ietf:wg:oauth:2.0:oob"]}`:                        `"urn:`,
		`{"service":"spiffe://demo.flor/service/outline","redirectURIs":["http://a.rete/#fragment"]}`:                          `#fragment"`,
		`{"service":"spiffe://demo.flor/node/ursula","redirectURIs":["http://a.rete/"]}`:                                       `node/ursula"`,
		`{"service":"spiffe://demo.flor/vertex/ursula","redirectURIs":["http://a.rete/"]}`:                                     `vertex/ursula"`,
		`{"service":"spiffe://demo.flor/service/outline","redirectURIs":["http://a.rete/"],"name":"x"}`:                        `"name"`,
		`{"service":"spiffe://demo.flor/service/outline","redirectURIs":["http://a.rete/"],"scopes":["email"]}`:                `want openid`,
		`{"service":"spiffe://demo.flor/service/outline","redirectURIs":["http://a.rete/"],"scopes":["openid","ad min"]}`:      `"ad min"`,
		`{"service":"spiffe://demo.flor/service/outline","redirectURIs":["http://a.rete/"],"postLogoutRedirectURIs":["/out"]}`: `"/out"`,
		`{"service":"spiffe://demo.flor/service/outline","redirectURIs":["http://a.rete/"]}`:                                   `issuer "": this provider is`,
		`{"redirectURIs":["http://a.rete/"]}`:                                                                                  "service",
	} {
		_, err := compile(granting(body, 1))
		if err == nil || !strings.Contains(err.Error(), "policy of drhorrible: need \"oidc-outline\" of "+ursula.String()+": request: ") || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got %v, want %s", body, err, part)
		}
	}
}

// granting returns a policy that grants the request in body.
func granting(body string, generation int) document.Policy {
	return document.Policy{
		Host: "drhorrible", Kinds: map[string]json.RawMessage{Name: json.RawMessage(`{"issuer":"` + issuerURL + `"}`)},
		Grants: []document.Grant{{Caller: ursula, Need: "oidc-outline", Kind: Name, Request: json.RawMessage(body), Generation: generation}},
	}
}

// FuzzDecode checks that an accepted request can be read from its record.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"issuer":"`+issuerURL+`","service":"spiffe://demo.flor/service/outline","redirectURIs":["http://a.rete/"]}`), 1)
	f.Add([]byte(`{"issuer":"`+issuerURL+`","service":"spiffe://demo.flor/service/ursula/wiki","redirectURIs":["https://a.rete/?b=c"]}`), 7)
	f.Fuzz(func(t *testing.T, body []byte, generation int) {
		want, err := decode(document.Grant{Request: body, Generation: generation}, issuerURL)
		if err != nil {
			return
		}
		r := want.registration(generation)
		for _, r.Rotation = range []*server.Rotation{nil, {Number: 2, Since: time.Unix(1784011430, 0)}} {
			var again registration
			if err := again.decode(r.encode()); err != nil || !again.equal(r) || again.client() != r.client() {
				t.Errorf("%s is %+v, and %+v when read again, %v", body, r, again, err)
			}
		}
	})
}

func TestCompile(t *testing.T) {
	for raw, part := range map[string]string{
		`{}`:                               `issuer ""`,
		`{"issuer":"auth.demo.flor.rete"}`: `issuer "auth.demo.flor.rete"`,
		`{"issuer":"http://auth.demo.flor.rete/"}`:                                                                           "nothing after",
		`{"issuer":"http://auth.demo.flor.rete/dex"}`:                                                                        "nothing after",
		`{"issuer":"http://a@auth.demo.flor.rete"}`:                                                                          "nothing after",
		`{"issuer":"ftp://auth.demo.flor.rete"}`:                                                                             "want http(s)",
		`{"issuer":"http://auth.demo.flor.rete","a":1}`:                                                                      `"a"`,
		`{"issuer":"http://auth.demo.flor.rete","ldap":{"corp":{"server":"http://ldap"}}}`:                                   `ldap "corp": server "http://ldap"`,
		`{"issuer":"http://auth.demo.flor.rete","ldap":{"corp":{"server":"ldaps://ldap"}}}`:                                  `userSearch.baseDN`,
		`{"issuer":"http://auth.demo.flor.rete","upstream":{"corp":{"issuer":"accounts.example"}}}`:                          `upstream "corp": issuer "accounts.example"`,
		`{"issuer":"http://auth.demo.flor.rete","upstream":{"local":{"issuer":"https://accounts.example","clientId":"us"}}}`: `"local": the name is taken`,
	} {
		policy := document.Policy{Host: "drhorrible", Kinds: map[string]json.RawMessage{Name: json.RawMessage(raw)}}
		if _, err := compile(policy); err == nil || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "drhorrible") {
			t.Errorf("%s: error is %v, want drhorrible and %q in it", raw, err, part)
		}
	}
}

func TestListen(t *testing.T) {
	for listen, part := range map[string]string{
		"5556":           "missing port",
		":5556":          "in clear",
		"0.0.0.0:5556":   "in clear",
		"192.0.2.1:5556": "in clear",
		"localhost:5556": "in clear",
	} {
		p := New(Config{Listen: listen, Users: "users", Policy: func() *Policy { return &Policy{} }})
		if err := p.Run(t.Context(), t.FailNow); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: error is %v, want %q in it", listen, err, part)
		}
	}
}

func TestListenTaken(t *testing.T) {
	f := newFixture(t)
	if err := New(f.p.cfg).Run(t.Context(), t.FailNow); err == nil || !strings.Contains(err.Error(), "oidc listen: ") || !strings.Contains(err.Error(), f.listen) {
		t.Errorf("error is %v, want oidc listen and %s in it", err, f.listen)
	}
}
