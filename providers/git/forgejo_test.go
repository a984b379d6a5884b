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

	"github.com/florete/florete"
	"github.com/florete/florete/providers/account"
	"github.com/florete/florete/tests/kit"
)

// contract answers as Forgejo's and Gitea's documented API (/swagger.v1.json) does, as far as
// this kind uses it. It stands for the server, which cannot be built here; see the README.
type contract struct {
	mu       sync.Mutex
	accounts map[string]map[int64]madeToken
	rights   map[string]string // "owner/repository account" → permission
	next     int64
}

type madeToken struct {
	ID     int64    `json:"id"`
	Name   string   `json:"name"`
	SHA1   string   `json:"sha1"`
	Scopes []string `json:"scopes"`
}

const forgejoPassword = "the provider's, of an administrator"

func newContract(t *testing.T) (*contract, account.Server, string) {
	t.Helper()
	c := &contract{accounts: map[string]map[int64]madeToken{}, rights: map[string]string{}}
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
		return 200, map[string]any{"login": r.PathValue("user")}
	})
	handle("POST /admin/users", func(r *http.Request) (int, any) {
		var of struct{ Username, Email, Password string }
		if json.NewDecoder(r.Body).Decode(&of) != nil || of.Email == "" || len(of.Password) < 8 || c.accounts[of.Username] != nil {
			return 422, map[string]string{"message": "user already exists"}
		}
		c.accounts[of.Username] = map[int64]madeToken{}
		return 201, map[string]any{"login": of.Username}
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

func forgejoAt(t *testing.T) (account.Server, string) {
	t.Helper()
	_, f, dir := newContract(t)
	return f, dir
}

// has is what an account has: its tokens with their scopes, and its rights.
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
	first := f.reads()["token"]
	check("ops/infra:read ops/more:read", "read:repository")
	f.passes(lifetime * 3 / 4)
	second := f.reads()["token"]
	check("ops/infra:read ops/more:read", "read:repository", "read:repository")
	f.passes(lifetime / 3)
	if tokens, _ := c.has("florete-ci"); tokens[first] != "" || tokens[second] == "" {
		t.Error("the former token has not ended, or the next one has")
	}
	want := f.want
	want.Access, want.Repositories = write, []string{"ops/more"}
	f.wants(want)
	third := f.reads()["token"]
	check("ops/more:write", "read:repository", "write:repository")
	if third == second {
		t.Error("the token that writes is the one that reads")
	}

	f.lose(dir)
	f.reads()
	check("ops/more:write", "read:repository", "write:repository", "write:repository")
	f.grant.Kind = ""
	f.passes(0)
	check("")

	want.Repositories = []string{"nobody/infra"}
	f.wants(want)
	f.refused("PUT repos/nobody/infra/collaborators/florete-ci: 404: not found")
	if err := os.WriteFile(filepath.Join(dir, "forge"), []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.refused("401: user does not exist")
}

// Where grants of one account differ, the highest generation is for all.
func TestGrantsDiffer(t *testing.T) {
	t.Parallel()
	_, at, dir := newContract(t)
	f := newFixture(t, at, dir, "florete-ci", "ops/infra")
	first := f.reads()["token"]
	other := f.grant
	other.Caller, other.Generation = kit.ID("node/oak"), 2
	f.others = []florete.Grant{other}
	next := f.reads()["token"]
	if next == first || f.reads()["token"] != next {
		t.Error("not one other token for both grants")
	}
}

// More tokens than a page has, of a provider whose state was lost often.
func TestForgejoPages(t *testing.T) {
	t.Parallel()
	c, at, dir := newContract(t)
	f := newFixture(t, at, dir, "florete-ci", "ops/infra")
	f.reads()
	for i := range 120 {
		c.next++
		c.accounts["florete-ci"][c.next] = madeToken{ID: c.next, Name: fmt.Sprintf("by-hand-%d", i), SHA1: strconv.Itoa(i), Scopes: []string{"all"}}
	}
	f.passes(lifetime*3/4 + time.Minute)
	f.reads()
	if tokens, _ := c.has("florete-ci"); len(tokens) != 2 {
		t.Errorf("%d tokens, want the two of the provider", len(tokens))
	}
}
