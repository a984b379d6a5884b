package git

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/tests/kit"
)

// contract answers as Forgejo's and Gitea's documented API (/swagger.v1.json) does, as far as
// this kind uses it. It stands for the server, which cannot be built here; see the README.
type contract struct {
	mu       sync.Mutex
	accounts map[string]map[int64]madeToken
	users    map[string]*madeUser
	rights   map[string]string // "owner/repository account" → permission
	next     int64
}

type madeToken struct {
	ID     int64    `json:"id"`
	Name   string   `json:"name"`
	SHA1   string   `json:"sha1"`
	Scopes []string `json:"scopes"`
}

type madeUser struct {
	ID         int64   `json:"id"`
	Email      string  `json:"email"`
	Restricted bool    `json:"restricted"`
	IsAdmin    bool    `json:"is_admin"`
	Password   string  `json:"-"`
	Keys       []int64 `json:"-"`
}

// register signs a person up at the forge, with an account of a name.
func (c *contract) register(name string, u madeUser) *madeUser {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(name, u)
}

func (c *contract) add(name string, u madeUser) *madeUser {
	c.next++
	u.ID = c.next
	c.accounts[name], c.users[name] = map[int64]madeToken{}, &u
	return &u
}

const forgejoPassword = "the provider's, of an administrator"

func newContract(t *testing.T) (*contract, serveraccount.Server, string) {
	t.Helper()
	c := &contract{accounts: map[string]map[int64]madeToken{}, users: map[string]*madeUser{}, rights: map[string]string{}}
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(r *http.Request) (int, any)) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /api/v1"+path, func(w http.ResponseWriter, r *http.Request) {
			c.mu.Lock()
			defer c.mu.Unlock()
			user, password, _ := r.BasicAuth()
			status, body := http.StatusUnauthorized, any(map[string]string{"message": "user does not exist [uid: 0, name: ]"})
			if user == "admin" && password == forgejoPassword {
				status, body = answer(r)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if body != nil {
				json.NewEncoder(w).Encode(body)
			}
		})
	}
	missing := map[string]string{"message": "not found"}
	handle("GET /users/{user}", func(r *http.Request) (int, any) {
		if c.accounts[r.PathValue("user")] == nil {
			return 404, missing
		}
		return 200, c.users[r.PathValue("user")]
	})
	handle("PATCH /admin/users/{user}", func(r *http.Request) (int, any) {
		var of struct {
			LoginName, Email, Password string
			SourceID                   *int64 `json:"source_id"`
			Restricted                 bool
		}
		u := c.users[r.PathValue("user")]
		if json.NewDecoder(r.Body).Decode(&of) != nil || u == nil || of.SourceID == nil || len(of.Password) < 8 {
			return 422, missing
		}
		u.Email, u.Password, u.Restricted = of.Email, of.Password, of.Restricted
		return 200, u
	})
	handle("GET /users/{user}/keys", func(r *http.Request) (int, any) {
		all := []map[string]int64{}
		for _, id := range c.users[r.PathValue("user")].Keys {
			all = append(all, map[string]int64{"id": id})
		}
		return 200, all
	})
	handle("DELETE /admin/users/{user}/keys/{id}", func(r *http.Request) (int, any) {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		u := c.users[r.PathValue("user")]
		u.Keys = slices.DeleteFunc(u.Keys, func(k int64) bool { return k == id })
		return 204, nil
	})
	handle("POST /admin/users", func(r *http.Request) (int, any) {
		var of struct {
			Username, Email, Password string
			Restricted                bool
		}
		if json.NewDecoder(r.Body).Decode(&of) != nil || of.Email == "" || len(of.Password) < 8 || c.accounts[of.Username] != nil {
			return 422, map[string]string{"message": "user already exists"}
		}
		return 201, c.add(of.Username, madeUser{Email: of.Email, Restricted: of.Restricted, Password: of.Password})
	})
	handle("PUT /repos/{owner}/{repo}/collaborators/{user}", func(r *http.Request) (int, any) {
		var of struct{ Permission string }
		if json.NewDecoder(r.Body).Decode(&of) != nil || !slices.Contains([]string{"read", "write", "admin"}, of.Permission) {
			return 422, missing
		}
		if r.PathValue("owner") != "ops" || c.accounts[r.PathValue("user")] == nil {
			return 404, missing
		}
		c.rights["ops/"+r.PathValue("repo")+" "+r.PathValue("user")] = of.Permission
		return 204, nil
	})
	handle("DELETE /repos/{owner}/{repo}/collaborators/{user}", func(r *http.Request) (int, any) {
		delete(c.rights, r.PathValue("owner")+"/"+r.PathValue("repo")+" "+r.PathValue("user"))
		return 204, nil
	})
	handle("GET /users/{user}/tokens", func(r *http.Request) (int, any) {
		all := []madeToken{}
		if c.accounts[r.PathValue("user")] == nil {
			return 404, missing
		}
		for _, made := range c.accounts[r.PathValue("user")] {
			made.SHA1 = "" // shown once
			all = append(all, made)
		}
		slices.SortFunc(all, func(a, b madeToken) int { return int(a.ID - b.ID) })
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		return 200, all[min(len(all), limit*(page-1)):min(len(all), limit*page)]
	})
	handle("POST /users/{user}/tokens", func(r *http.Request) (int, any) {
		var made madeToken
		if err := json.NewDecoder(r.Body).Decode(&made); err != nil || len(made.Scopes) == 0 {
			return 422, missing
		}
		for _, other := range c.accounts[r.PathValue("user")] {
			if other.Name == made.Name {
				return 400, map[string]string{"message": "access token name has been used already"}
			}
		}
		c.next++
		made.ID, made.SHA1 = c.next, fmt.Sprintf("%040d", c.next)
		c.accounts[r.PathValue("user")][made.ID] = made
		return 201, made
	})
	handle("DELETE /users/{user}/tokens/{id}", func(r *http.Request) (int, any) {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if _, there := c.accounts[r.PathValue("user")][id]; !there {
			return 404, missing
		}
		delete(c.accounts[r.PathValue("user")], id)
		return 204, nil
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "forge"), []byte(forgejoPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := s.Listener.Addr().String()
	return c, at(forgejoKind, address, address), dir
}

func forgejoAt(t *testing.T) (serveraccount.Server, string) {
	t.Helper()
	_, f, dir := newContract(t)
	return f, dir
}

// has returns the tokens of an account, with their scopes, and its rights.
func (c *contract) has(account string) (tokens map[string]string, rights map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tokens, rights = map[string]string{}, map[string]string{}
	for _, made := range c.accounts[account] {
		tokens[made.SHA1] = strings.Join(made.Scopes, " ")
	}
	for of, permission := range c.rights {
		if name, user, _ := strings.Cut(of, " "); user == account {
			rights[name] = permission
		}
	}
	return tokens, rights
}

func TestForgejo(t *testing.T) {
	t.Parallel()
	c, at, dir := newContract(t)
	f := newFixture(t, at, dir, "florete-ci", "ops/infra", "ops/more")
	check := func(rights string, scopes ...string) {
		t.Helper()
		tokens, has := c.has("florete-ci")
		var all []string
		for _, scope := range tokens {
			all = append(all, scope)
		}
		slices.Sort(all)
		if got := fmt.Sprint(has); got != "map["+rights+"]" || !slices.Equal(all, scopes) {
			t.Fatalf("the account has %s and tokens of %v, want %s and %v", got, all, rights, scopes)
		}
	}
	first := f.Reads()["token"]
	check("ops/infra:read ops/more:read", "read:repository")
	f.Passes(lifetime * 3 / 4)
	second := f.Reads()["token"]
	check("ops/infra:read ops/more:read", "read:repository", "read:repository")
	f.Passes(lifetime / 3)
	if tokens, _ := c.has("florete-ci"); tokens[first] != "" || tokens[second] == "" {
		t.Error("the former token has not ended, or the next one has")
	}
	want := f.want
	want.Access, want.Repositories = write, []string{"ops/more"}
	f.wants(want)
	third := f.Reads()["token"]
	check("ops/more:write", "read:repository", "write:repository")
	if third == second {
		t.Error("the token that writes is the one that reads")
	}

	f.lose(dir)
	f.Reads()
	check("ops/more:write", "read:repository", "write:repository", "write:repository")
	f.Grant.Kind = ""
	f.Passes(0)
	check("")

	want.Repositories = []string{"nobody/infra"}
	f.wants(want)
	f.refused("PUT repos/nobody/infra/collaborators/florete-ci: 404: not found")
	if err := os.WriteFile(filepath.Join(dir, "forge"), []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.refused("401: user does not exist")
}

// TestForgejoTaken holds that an account which somebody else registered under the name gets nothing,
// whether it was there first or replaced the provider's.
func TestForgejoTaken(t *testing.T) {
	t.Parallel()
	for what, taken := range map[string]madeUser{
		"a registered account":              {Email: "mallory@example.org"},
		"one with the provider's address":   {Email: "florete-ci@florete.invalid"},
		"a restricted one":                  {Email: "mallory@example.org", Restricted: true},
		"an administrator of this name":     {Email: "florete-ci@florete.invalid", Restricted: true, IsAdmin: true},
		"one with an address of its domain": {Email: "mallory@florete.invalid", Restricted: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, at, dir := newContract(t)
			c.register("florete-ci", taken)
			f := newFixture(t, at, dir, "florete-ci", "ops/infra")
			f.refused("account florete-ci is there and was not made by this provider")
			if tokens, rights := c.has("florete-ci"); len(tokens)+len(rights) > 0 {
				t.Errorf("it has %v and %v", tokens, rights)
			}
			delete(c.accounts, "florete-ci")
			f.Reads()
			c.register("florete-ci", taken) // after an administrator removed the provider's
			f.refused("account florete-ci is there and was not made by this provider")
			if tokens, rights := c.has("florete-ci"); len(tokens)+len(rights) > 0 {
				t.Errorf("once it replaced the provider's it has %v and %v", tokens, rights)
			}
		})
	}
}

// TestForgejoTakeOver holds that nobody else signs in at an account of a state that is lost, or has
// a token there for longer than one of the provider lasts.
func TestForgejoTakeOver(t *testing.T) {
	t.Parallel()
	c, at, dir := newContract(t)
	u := c.register("florete-ci", madeUser{Email: "florete-ci@florete.invalid", Restricted: true, Password: "mallory's", Keys: []int64{7, 8}})
	c.accounts["florete-ci"][99] = madeToken{ID: 99, Name: "florete-9999999999-x", SHA1: "mallory's", Scopes: []string{"all"}}
	f := newFixture(t, at, dir, "florete-ci", "ops/infra")
	f.Reads()
	if u.Password == "mallory's" || len(u.Keys) > 0 {
		t.Errorf("others may sign in, by a password or by keys %v", u.Keys)
	}
	password := u.Password
	f.Passes(lifetime * 3 / 4)
	f.Reads()
	if u.Password != password {
		t.Error("the account that the provider has is taken over again")
	}
	f.Passes(lifetime / 2)
	if tokens, _ := c.has("florete-ci"); tokens["mallory's"] != "" {
		t.Error("a token of somebody else works after a lifetime")
	}
}

// Where grants of one account differ, the highest generation is for all.
func TestGrantsDiffer(t *testing.T) {
	t.Parallel()
	_, at, dir := newContract(t)
	f := newFixture(t, at, dir, "florete-ci", "ops/infra")
	first := f.Reads()["token"]
	other := f.Grant
	other.Caller, other.Generation = kit.ID("node/oak"), 2
	f.Others = []document.Grant{other}
	next := f.Reads()["token"]
	if next == first || f.Reads()["token"] != next {
		t.Error("not one other token for both grants")
	}
}

// More tokens than a page has, of a provider whose state was lost often.
func TestForgejoPages(t *testing.T) {
	t.Parallel()
	c, at, dir := newContract(t)
	f := newFixture(t, at, dir, "florete-ci", "ops/infra")
	f.Reads()
	for i := range 120 {
		c.next++
		c.accounts["florete-ci"][c.next] = madeToken{ID: c.next, Name: fmt.Sprintf("by-hand-%d", i), SHA1: strconv.Itoa(i), Scopes: []string{"all"}}
	}
	f.Passes(lifetime*3/4 + time.Minute)
	f.Reads()
	if tokens, _ := c.has("florete-ci"); len(tokens) != 2 {
		t.Errorf("%d tokens, want the two of the provider", len(tokens))
	}
}
