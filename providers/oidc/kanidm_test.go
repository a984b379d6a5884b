package oidc

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// kanidmContract is the API of Kanidm as server/core/src/https/v1_oauth2.rs, errors.rs and the
// access profile idm_acp_oauth2_manage of 1.12 have it.
type kanidmContract struct {
	*contract
	clients map[string]*kanidmHeld
	made    int // secrets
}

type kanidmHeld struct {
	attrs  map[string][]string
	scopes map[string][]string            // by group
	claims map[string]map[string][]string // by claim and group
	joins  map[string]string              // by claim
	secret string
}

var (
	kanidmIname     = regexp.MustCompile(`^[a-z][a-z0-9-_.]{0,63}$`)
	kanidmClaimName = regexp.MustCompile(`^[0-9a-zA-Z_]+([:\-][0-9a-zA-Z_]+)*$`)
	kanidmGroups    = []string{kanidmEveryone, "writers", "editors"}

	// Attributes used here that the access profile permits to write.
	kanidmWritable = []string{"name", "displayname", "oauth2_rs_origin", "oauth2_rs_origin_landing", "oauth2_strict_redirect_uri"}
)

func newKanidmContract(t *testing.T) *kanidmContract {
	k := &kanidmContract{
		contract: newContract(t, func(h http.Header) bool { return h.Get("Authorization") == "Bearer "+registrationToken }),
		clients:  map[string]*kanidmHeld{},
	}
	writable := func(e kanidmEntry, public bool) bool {
		for attr := range e.Attrs {
			if !slices.Contains(kanidmWritable, attr) && (public || attr != "oauth2_allow_insecure_client_disable_pkce") {
				return false
			}
		}
		return true
	}
	for _, kind := range []string{"_basic", "_public"} {
		k.handle("POST /v1/oauth2/"+kind, func(r *http.Request, body []byte) (int, any) {
			var e kanidmEntry
			if strictly(body, &e) != nil || !writable(e, kind == "_public") || len(e.Attrs["name"]) != 1 ||
				len(e.Attrs["displayname"]) != 1 || len(e.Attrs["oauth2_rs_origin_landing"]) != 1 {
				return 400, map[string]any{"schemaviolation": "missing"}
			}
			name := e.Attrs["name"][0]
			if !kanidmIname.MatchString(name) {
				return 400, map[string]any{"invalidattribute": name}
			}
			if k.clients[name] != nil {
				return 409, map[string]any{"error": "Attribute uniqueness error", "conflicting_attributes": []string{"name"}}
			}
			c := &kanidmHeld{attrs: e.Attrs, scopes: map[string][]string{}, claims: map[string]map[string][]string{}, joins: map[string]string{}}
			if kind == "_basic" {
				k.made++
				c.secret = fmt.Sprintf("secret-%d-of-the-server", k.made)
			}
			k.clients[name] = c
			return 200, nil
		})
	}
	at := func(missing int, answer func(c *kanidmHeld, r *http.Request, body []byte) (int, any)) func(*http.Request, []byte) (int, any) {
		return func(r *http.Request, body []byte) (int, any) {
			if c := k.clients[r.PathValue("id")]; c != nil {
				return answer(c, r, body)
			}
			if missing == 200 {
				return 200, nil
			}
			return missing, "nomatchingentries"
		}
	}
	k.handle("GET /v1/oauth2/{id}", at(200, func(c *kanidmHeld, r *http.Request, body []byte) (int, any) {
		attrs := maps.Clone(c.attrs)
		for g, s := range c.scopes {
			attrs[kanidmScopes] = append(attrs[kanidmScopes], fmt.Sprintf("%s@idm.example.org: {%q}", g, strings.Join(s, `", "`)))
		}
		for claim, groups := range c.claims {
			for g, values := range groups {
				attrs[kanidmClaims] = append(attrs[kanidmClaims], fmt.Sprintf("%s: %s@idm.example.org %q", claim, g, fmt.Sprintf("%q", strings.Join(values, " "))))
			}
		}
		return 200, kanidmEntry{attrs}
	}))
	k.handle("GET /v1/oauth2/{id}/_basic_secret", at(200, func(c *kanidmHeld, r *http.Request, body []byte) (int, any) {
		if c.secret == "" {
			return 200, nil
		}
		return 200, c.secret
	}))
	k.handle("PATCH /v1/oauth2/{id}", at(404, func(c *kanidmHeld, r *http.Request, body []byte) (int, any) {
		var e kanidmEntry
		if strictly(body, &e) != nil || !writable(e, c.secret == "") {
			return 403, "accessdenied"
		}
		maps.Copy(c.attrs, e.Attrs)
		return 200, nil
	}))
	k.handle("DELETE /v1/oauth2/{id}", at(404, func(c *kanidmHeld, r *http.Request, body []byte) (int, any) {
		delete(k.clients, r.PathValue("id"))
		return 200, nil
	}))
	k.handle("POST /v1/oauth2/{id}/_scopemap/{group}", at(404, func(c *kanidmHeld, r *http.Request, body []byte) (int, any) {
		var scopes []string
		group := r.PathValue("group")
		if strictly(body, &scopes) != nil {
			return 400, nil
		}
		if !slices.Contains(kanidmGroups, group) {
			return 404, "nomatchingentries"
		}
		c.scopes[group] = scopes
		return 200, nil
	}))
	k.handle("DELETE /v1/oauth2/{id}/_scopemap/{group}", at(404, func(c *kanidmHeld, r *http.Request, body []byte) (int, any) {
		group, domain, _ := strings.Cut(r.PathValue("group"), "@")
		if c.scopes[group] == nil || domain != "idm.example.org" {
			return 404, "nomatchingentries"
		}
		delete(c.scopes, group)
		return 200, nil
	}))
	// valueset/oauth.rs has these rules. A claim whose last group is removed is removed too.
	k.handle("POST /v1/oauth2/{id}/_claimmap/{claim}/{group}", at(404, func(c *kanidmHeld, r *http.Request, body []byte) (int, any) {
		var values []string
		claim, group := r.PathValue("claim"), r.PathValue("group")
		if strictly(body, &values) != nil || !slices.Contains(kanidmGroups, group) {
			return 404, "nomatchingentries"
		}
		for _, v := range append(values, claim) {
			if !kanidmClaimName.MatchString(v) {
				return 400, map[string]any{"invalidattribute": "Invalid Oauth Claim Map syntax"}
			}
		}
		if c.claims[claim] == nil {
			c.claims[claim] = map[string][]string{}
		}
		c.claims[claim][group] = values
		return 200, nil
	}))
	k.handle("POST /v1/oauth2/{id}/_claimmap/{claim}", at(404, func(c *kanidmHeld, r *http.Request, body []byte) (int, any) {
		var join string
		if strictly(body, &join) != nil || !slices.Contains([]string{"csv", "ssv", "array"}, join) {
			return 422, nil
		}
		c.joins[r.PathValue("claim")] = join
		return 200, nil
	}))
	k.handle("DELETE /v1/oauth2/{id}/_claimmap/{claim}/{group}", at(404, func(c *kanidmHeld, r *http.Request, body []byte) (int, any) {
		claim := r.PathValue("claim")
		group, domain, _ := strings.Cut(r.PathValue("group"), "@")
		if c.claims[claim][group] == nil || domain != "idm.example.org" {
			return 404, "nomatchingentries"
		}
		if delete(c.claims[claim], group); len(c.claims[claim]) == 0 {
			delete(c.claims, claim)
			delete(c.joins, claim)
		}
		return 200, nil
	}))
	return k
}

// accepts reports whether a client can authenticate with a host's values.
func (k *kanidmContract) accepts(values map[string]string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.clients[values["clientId"]]
	return c != nil && c.secret != "" && c.secret == values["clientSecret"]
}

func TestKanidmConformance(t *testing.T) {
	t.Parallel()
	k := newKanidmContract(t)
	k.conforms(registrarKanidm)
}

func TestKanidm(t *testing.T) {
	t.Parallel()
	k := newKanidmContract(t)
	f := k.registers(registrarKanidm, nil)
	first := must(f.fetches())
	id := first["clientId"]
	c := k.clients[id]
	if !k.accepts(first) || first["issuer"] != issuerURL+"/oauth2/openid/"+id || len(c.scopes) != 1 || !slices.Equal(c.scopes[kanidmEveryone], scopes) {
		t.Fatalf("the client is %+v for %v", c, first)
	}
	k.taken()
	if again := must(f.fetches()); !maps.Equal(again, first) || len(k.taken()) != 0 {
		t.Error("the same request changes something")
	}

	// A change modifies the client and keeps its secret.
	f.want = func(r *Request) {
		r.AllowedGroups, r.Scopes = []string{"writers", "editors"}, []string{"openid", "email"}
	}
	f.grant(webCallback, webCallback+"2")
	if again := must(f.fetches()); !maps.Equal(again, first) {
		t.Error("other redirect URIs are another client")
	}
	want := map[string][]string{"writers": {"openid", "email"}, "editors": {"openid", "email"}}
	if !slices.Equal(c.attrs["oauth2_rs_origin"], []string{webCallback, webCallback + "2"}) || !maps.EqualFunc(c.scopes, want, slices.Equal) {
		t.Errorf("the client is %+v", c)
	}

	// A new secret makes another client. The former client ends after hosts had time to fetch the
	// new one.
	f.rotate(2)
	second := must(f.fetches())
	if second["clientId"] == id || !k.accepts(first) || !k.accepts(second) {
		t.Fatal("of two clients in an overlap one does not work")
	}
	f.sweeps(formerLives - time.Minute)
	if !k.accepts(first) {
		t.Error("the former one has ended too soon")
	}
	f.sweeps(formerLives + time.Minute)
	if k.accepts(first) || !k.accepts(second) {
		t.Error("the former one has not ended, or the one in use has")
	}

	// If somebody deletes the client by hand, the next change creates another one.
	k.mu.Lock()
	clear(k.clients)
	k.mu.Unlock()
	f.grant(webCallback)
	f.rotate(2)
	if third := must(f.fetches()); !k.accepts(third) {
		t.Error("after it was deleted by hand there is none")
	}
	f.grant()
	f.sweeps(0)
	if len(k.clients) != 0 {
		t.Errorf("%v are registered", k.clients)
	}
}

// TestKanidmClaims checks that Kanidm makes the groups and claims of a client, and that those of
// former settings are removed.
func TestKanidmClaims(t *testing.T) {
	t.Parallel()
	k := newKanidmContract(t)
	claims, groups := map[string]string{"roles": "groups"}, map[string][]string{"author": {"writers", "editors"}, "reviewer": {"editors"}}
	f := k.registers(registrarKanidm, func(r *Request) { r.Scopes, r.Claims, r.Groups = []string{"openid", "wiki"}, claims, groups })
	c := k.clients[must(f.fetches())["clientId"]]
	check := func(want map[string][]string, names ...string) {
		t.Helper()
		if len(c.claims) != len(names) {
			t.Errorf("claims %v, want %v", c.claims, names)
		}
		for _, name := range names {
			if !maps.EqualFunc(c.claims[name], want, slices.Equal) || c.joins[name] != "array" {
				t.Errorf("claim %s is %v, joined as %s, want %v", name, c.claims[name], c.joins[name], want)
			}
		}
	}
	check(map[string][]string{"writers": {"author"}, "editors": {"author", "reviewer"}}, "groups", "roles")
	claims, groups = map[string]string{"team": "groups"}, map[string][]string{"author": {"writers"}}
	f.grant(webCallback)
	must(f.fetches())
	check(map[string][]string{"writers": {"author"}}, "groups", "team")
	groups = map[string][]string{"author": {"nobody"}}
	f.grant(webCallback)
	if _, err := f.fetches(); err == nil || !strings.Contains(err.Error(), `it has no group "nobody"`) {
		t.Errorf("%v, want that there is no such group", err)
	}
	claims, groups = nil, nil
	f.grant(webCallback)
	must(f.fetches())
	check(nil)

	for what, change := range map[string]func(*Request){
		"another source": func(r *Request) { r.Claims["login"] = "email" },
		"no groups":      func(r *Request) { r.Groups = nil },
		"all scopes":     func(r *Request) { r.Scopes = nil },
		"scope groups":   func(r *Request) { r.Scopes = append(r.Scopes, "groups") },
	} {
		r := Request{Scopes: []string{"openid"}, Claims: map[string]string{"roles": "groups"}, Groups: map[string][]string{"author": {"writers"}}}
		if err := validAt(registrarKanidm, r); err != nil {
			t.Fatal(err)
		}
		if change(&r); validAt(registrarKanidm, r) == nil {
			t.Errorf("%s: accepted", what)
		}
		if validAt(registrarPocketID, r) == nil || validAt("", r) == nil {
			t.Errorf("%s: accepted by a registrar that makes no claims", what)
		}
	}
}

func TestKanidmPublic(t *testing.T) {
	t.Parallel()
	k := newKanidmContract(t)
	f := k.registers(registrarKanidm, func(r *Request) { r.Public = true })
	values := must(f.fetches())
	if _, has := values["clientSecret"]; has || k.clients[values["clientId"]] == nil || k.clients[values["clientId"]].secret != "" {
		t.Errorf("a public client is %+v for %v", k.clients, values)
	}
}

// Wherever a process ends, the next process has a client that works, and nothing else remains.
func TestKanidmCutOff(t *testing.T) {
	t.Parallel()
	for _, cut := range []string{"POST /v1/oauth2/_basic", "/_scopemap/writers", "/_basic_secret"} {
		k := newKanidmContract(t)
		f := k.registers(registrarKanidm, func(r *Request) { r.AllowedGroups = []string{"writers"} })
		fail := func(call string) int {
			if strings.HasSuffix(call, cut) {
				return answerLost
			}
			return 0
		}
		k.failing(fail)
		if _, err := f.fetches(); err == nil || !strings.Contains(err.Error(), "status 504") || len(k.clients) != 1 {
			t.Fatalf("%s: %v", cut, err)
		}
		k.failing(nil)
		f.restart()
		if values := must(f.fetches()); !k.accepts(values) || len(k.clients) != 1 || len(k.clients[values["clientId"]].scopes) != 1 {
			t.Errorf("%s: %v for %v", cut, k.clients, values)
		}

		// The remains of a service that is no longer granted are deleted too.
		k.failing(fail)
		f.rotate(2)
		if _, err := f.fetches(); err == nil || len(k.clients) != 2 {
			t.Fatalf("%s: %v, %v", cut, err, k.clients)
		}
		k.failing(nil)
		f.grant()
		f.sweeps(0)
		if len(k.clients) != 0 {
			t.Errorf("%s: %v are left", cut, k.clients)
		}
	}
}

func TestKanidmRefused(t *testing.T) {
	t.Parallel()
	k := newKanidmContract(t)
	f := k.registers(registrarKanidm, func(r *Request) { r.AllowedGroups = []string{"nobody"} })
	if _, err := f.fetches(); err == nil || !strings.Contains(err.Error(), `it has no group "nobody"`) {
		t.Errorf("%v, want that there is no such group", err)
	}
	k.failing(func(string) int { return http.StatusForbidden })
	if _, err := f.fetches(); err == nil || !strings.Contains(err.Error(), "status 403") {
		t.Errorf("%v, want the answer of the server", err)
	}
	long, _ := k.client().pending("1"+strings.Repeat("a", 62)+".demo.flor.rete", random())
	if !kanidmIname.MatchString(long.ID) {
		t.Errorf("%s is no name there", long.ID)
	}
}

func (k *kanidmContract) client() kanidm { return kanidm{k.url, registrationToken} }
