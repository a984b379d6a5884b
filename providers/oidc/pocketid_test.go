package oidc

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// pocketIDContract is the API of Pocket ID as backend/internal/controller/oidc_controller.go,
// user_group_controller.go and dto/oidc_dto.go of v2.14.0 have it.
type pocketIDContract struct {
	*contract
	clients map[string]*pocketHeld
	groups  []string // the ID of each is "id-" and its name
	made    int      // secrets
}

type pocketHeld struct {
	pocketClient
	groups  []string
	secrets []pocketHeldSecret
}

type pocketHeldSecret struct{ id, value string }

var pocketClientID = regexp.MustCompile("^[a-zA-Z0-9._-]{2,128}$")

func newPocketIDContract(t *testing.T) *pocketIDContract {
	p := &pocketIDContract{
		contract: newContract(t, func(h http.Header) bool { return h.Get("X-API-Key") == registrationToken }),
		clients:  map[string]*pocketHeld{},
	}
	for i := range 100 { // the first page
		p.groups = append(p.groups, fmt.Sprintf("group%d", i))
	}
	p.groups = append(p.groups, "writers", "editors")
	missing := map[string]string{"error": "OIDC client not found", "code": "not_found"}
	p.handle("POST /api/oidc/clients", func(r *http.Request, body []byte) (int, any) {
		c := &pocketHeld{}
		if strictly(body, &c.pocketClient) != nil || !pocketClientID.MatchString(c.ID) || c.Name == "" || len(c.Name) > 50 {
			return 400, map[string]string{"error": "Request body is invalid"}
		}
		if p.clients[c.ID] != nil {
			return 409, map[string]string{"error": "Client ID is already in use"}
		}
		p.clients[c.ID] = c
		return 201, c.pocketClient
	})
	at := func(answer func(c *pocketHeld, r *http.Request, body []byte) (int, any)) func(*http.Request, []byte) (int, any) {
		return func(r *http.Request, body []byte) (int, any) {
			c := p.clients[r.PathValue("id")]
			if c == nil {
				return 404, missing
			}
			return answer(c, r, body)
		}
	}
	p.handle("PUT /api/oidc/clients/{id}", at(func(c *pocketHeld, r *http.Request, body []byte) (int, any) {
		var next pocketClient
		if strictly(body, &next) != nil || next.ID != "" || next.Name == "" || len(next.Name) > 50 {
			return 400, nil
		}
		next.ID = c.ID
		c.pocketClient = next
		if !next.GroupRestricted {
			c.groups = nil
		}
		return 200, next
	}))
	p.handle("DELETE /api/oidc/clients/{id}", at(func(c *pocketHeld, r *http.Request, body []byte) (int, any) {
		delete(p.clients, c.ID)
		return 204, nil
	}))
	p.handle("PUT /api/oidc/clients/{id}/allowed-user-groups", at(func(c *pocketHeld, r *http.Request, body []byte) (int, any) {
		var in struct {
			UserGroupIDs []string `json:"userGroupIds"`
		}
		if strictly(body, &in) != nil || in.UserGroupIDs == nil {
			return 400, nil
		}
		c.groups = slices.DeleteFunc(in.UserGroupIDs, func(id string) bool { // unknown groups are left out
			return !slices.Contains(p.groups, strings.TrimPrefix(id, "id-"))
		})
		return 200, c.pocketClient
	}))
	p.handle("GET /api/oidc/clients/{id}/secrets", at(func(c *pocketHeld, r *http.Request, body []byte) (int, any) {
		all := []pocketSecret{}
		for _, s := range c.secrets {
			all = append(all, pocketSecret{s.id, s.value[:4]})
		}
		return 200, all
	}))
	p.handle("POST /api/oidc/clients/{id}/secrets", at(func(c *pocketHeld, r *http.Request, body []byte) (int, any) {
		var in struct {
			Secret string `json:"secret"`
		}
		if strictly(body, &in) != nil || len(in.Secret) < 16 || c.Public || len(c.secrets) >= 20 {
			return 400, nil
		}
		p.made++
		s := pocketHeldSecret{fmt.Sprintf("secret-%d", p.made), in.Secret}
		c.secrets = append(c.secrets, s)
		return 201, map[string]any{"id": s.id, "prefix": s.value[:4], "secret": s.value, "isActive": true}
	}))
	p.handle("DELETE /api/oidc/clients/{id}/secrets/{secret}", at(func(c *pocketHeld, r *http.Request, body []byte) (int, any) {
		before := len(c.secrets)
		c.secrets = slices.DeleteFunc(c.secrets, func(s pocketHeldSecret) bool { return s.id == r.PathValue("secret") })
		if len(c.secrets) == before {
			return 404, map[string]string{"error": "Client secret not found"}
		}
		return 204, nil
	}))
	p.handle("GET /api/user-groups", func(r *http.Request, body []byte) (int, any) {
		page := 1
		fmt.Sscan(r.FormValue("pagination[page]"), &page)
		if r.FormValue("pagination[limit]") != "100" {
			return 400, nil
		}
		var data []map[string]string
		for _, g := range p.groups[min(100*(page-1), len(p.groups)):min(100*page, len(p.groups))] {
			data = append(data, map[string]string{"id": "id-" + g, "name": g, "friendlyName": g})
		}
		return 200, map[string]any{"data": data, "pagination": map[string]int{"totalPages": (len(p.groups) + 99) / 100}}
	})
	return p
}

// accepts reports whether a client can authenticate with a host's values.
func (p *pocketIDContract) accepts(values map[string]string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[values["clientId"]]
	return c != nil && slices.ContainsFunc(c.secrets, func(s pocketHeldSecret) bool { return s.value == values["clientSecret"] })
}

func TestPocketIDConformance(t *testing.T) {
	t.Parallel()
	p := newPocketIDContract(t)
	p.conforms(registrarPocketID)
}

func TestPocketID(t *testing.T) {
	t.Parallel()
	p := newPocketIDContract(t)
	f := p.registers(registrarPocketID, nil)
	id := "outline.demo.flor.rete"
	first := must(f.fetches())
	if first["clientId"] != id || !p.accepts(first) || p.clients[id].PKCE || p.clients[id].GroupRestricted {
		t.Fatalf("the client is %+v for %v", p.clients[id], first)
	}
	p.taken()
	if again := must(f.fetches()); !maps.Equal(again, first) || len(p.taken()) != 0 {
		t.Error("the same request changes something")
	}

	// A change modifies the client and keeps its secret.
	f.want = func(r *Request) {
		r.AllowedGroups, r.PostLogoutRedirectURIs = []string{"writers", "editors"}, []string{"https://outline.example.org/bye"}
	}
	f.grant(webCallback, webCallback+"2")
	if again := must(f.fetches()); !maps.Equal(again, first) {
		t.Error("other redirect URIs are another client")
	}
	c := p.clients[id]
	if !slices.Equal(c.CallbackURLs, []string{webCallback, webCallback + "2"}) || len(c.LogoutURLs) != 1 ||
		!c.GroupRestricted || !slices.Equal(c.groups, []string{"id-writers", "id-editors"}) {
		t.Errorf("the client is %+v", c)
	}
	f.want = nil
	f.grant(webCallback)
	must(f.fetches())
	if c.GroupRestricted || len(c.groups) != 0 {
		t.Errorf("the client is for %v", c.groups)
	}

	// The former of two secrets ends after hosts had time to fetch the new one.
	f.rotate(2)
	second := must(f.fetches())
	if second["clientId"] != id || second["clientSecret"] == first["clientSecret"] || !p.accepts(first) || !p.accepts(second) {
		t.Fatal("of two secrets in an overlap one does not work")
	}
	f.sweeps(formerLives - time.Minute)
	if !p.accepts(first) {
		t.Error("the former one has ended too soon")
	}
	f.sweeps(formerLives + time.Minute)
	if p.accepts(first) || !p.accepts(second) {
		t.Error("the former one has not ended, or the one in use has")
	}

	// No host is granted the client any more.
	f.grant()
	f.sweeps(0)
	if e := must(f.p.readExternal(t.Context(), id)); len(p.clients) != 0 || e.modified != 0 {
		t.Errorf("%v are registered, kept %+v", p.clients, e)
	}
}

func TestPocketIDPublic(t *testing.T) {
	t.Parallel()
	p := newPocketIDContract(t)
	f := p.registers(registrarPocketID, func(r *Request) { r.Public = true })
	values := must(f.fetches())
	c := p.clients[values["clientId"]]
	if _, has := values["clientSecret"]; has || !c.Public || !c.PKCE || len(c.secrets) != 0 {
		t.Errorf("a public client is %+v for %v", c, values)
	}
	f.grant()
	f.sweeps(0)
	if len(p.clients) != 0 {
		t.Errorf("%v are registered", p.clients)
	}
}

// Wherever a process ends, the next process has a client that works, and nothing else remains.
func TestPocketIDCutOff(t *testing.T) {
	t.Parallel()
	id := "outline.demo.flor.rete"
	for _, cut := range []string{"POST /api/oidc/clients", "PUT /api/oidc/clients/" + id + "/allowed-user-groups", "POST /api/oidc/clients/" + id + "/secrets"} {
		p := newPocketIDContract(t)
		f := p.registers(registrarPocketID, func(r *Request) { r.AllowedGroups = []string{"writers"} })

		p.failing(func(call string) int {
			if call == cut {
				return answerLost
			}
			return 0
		})
		if _, err := f.fetches(); err == nil || !strings.Contains(err.Error(), "status 504") {
			t.Fatalf("%s: %v", cut, err)
		}
		p.failing(nil)
		f.restart()
		values := must(f.fetches())
		if c := p.clients[id]; !p.accepts(values) || len(c.secrets) != 1 || len(c.groups) != 1 {
			t.Errorf("%s: the client is %+v", cut, c)
		}
		p.failing(func(string) int { return http.StatusBadGateway })
		f.rotate(2)
		if _, err := f.fetches(); err == nil {
			t.Errorf("%s: registered while the server is away", cut)
		}
		p.failing(nil)
		if !p.accepts(values) {
			t.Errorf("%s: what hosts have has ended", cut)
		}
		f.grant()
		f.sweeps(0)
		if len(p.clients) != 0 {
			t.Errorf("%s: %v are left", cut, p.clients)
		}
	}
}

func TestPocketIDRefused(t *testing.T) {
	t.Parallel()
	p := newPocketIDContract(t)
	f := p.registers(registrarPocketID, func(r *Request) { r.AllowedGroups = []string{"nobody"} })
	if _, err := f.fetches(); err == nil || !strings.Contains(err.Error(), `it has no group "nobody"`) {
		t.Errorf("%v, want that there is no such group", err)
	}
	if c := p.clients["outline.demo.flor.rete"]; !c.GroupRestricted || len(c.groups) != 0 {
		t.Errorf("without its group the client is %+v", c)
	}
	for token, want := range map[string]string{"another": "status 401", "": "has no token"} {
		if err := os.WriteFile(filepath.Join(f.dir, "registration-token"), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.fetches(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "another") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
