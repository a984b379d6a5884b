// Package gatetest runs the issuer of a cluster for tests of a gate, and a browser that signs in.
package gatetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/oidc"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// These are the people of the issuer. Alice is in the group writers, and Bob is in no group.
const (
	Alice    = "alice@demo.flor"
	Bob      = "bob@demo.flor"
	Password = "correct horse battery staple"
)

var hash = sync.OnceValue(func() string {
	b, err := bcrypt.GenerateFromPassword([]byte(Password), bcrypt.DefaultCost)
	if err != nil {
		panic(err)
	}
	return string(b)
})

// Issuer is a running provider of kind oidc.
type Issuer struct {
	URL string
	// Delivered contains the values that the hosts of a client receive, by service.
	Delivered map[string]map[string]string

	t       *testing.T
	dir     string
	address string
	policy  document.Policy
	stop    func()
}

// Start starts an issuer with one client for each service in clients. The map contains the redirect
// URIs of each service. Only members of the allowed groups can sign in. If allowedGroups is nil,
// everybody can. The issuer stops when the test ends.
func Start(t *testing.T, allowedGroups []string, clients map[string][]string) *Issuer {
	t.Helper()
	i := &Issuer{Delivered: map[string]map[string]string{}, t: t, dir: t.TempDir(), address: providertest.Loopback()}
	i.URL = "http://" + i.address
	settings, err := json.Marshal(map[string]string{"issuer": i.URL})
	if err != nil {
		t.Fatal(err)
	}
	i.policy = document.Policy{Cluster: "demo", Host: "forge", TrustDomain: kit.Domain, Kinds: map[string]json.RawMessage{oidc.Name: settings}}
	for name, uris := range clients {
		request := oidc.Request{Issuer: i.URL, Service: kit.ID("service/" + name), RedirectURIs: uris, AllowedGroups: allowedGroups}
		i.policy.Grants = append(i.policy.Grants, document.Grant{Caller: kit.ID("node/gate"), Need: "oidc--" + name, Kind: oidc.Name, Request: kit.JSON(request), Generation: 1})
	}
	i.People(Alice, Bob)
	return i
}

// People restarts the issuer so that only the people with these email addresses have an account.
func (i *Issuer) People(people ...string) {
	i.t.Helper()
	var users []map[string]any
	for _, email := range people {
		name, _, _ := strings.Cut(email, "@")
		u := map[string]any{"email": email, "username": name, "userID": "id-" + name, "hash": hash()}
		if email == Alice {
			u["groups"] = []string{"writers"}
		}
		users = append(users, u)
	}
	b, err := json.Marshal(users)
	if err == nil {
		err = os.WriteFile(filepath.Join(i.dir, "users"), b, 0o600)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	i.Stop()
	i.start()
}

// Stop stops the issuer.
func (i *Issuer) Stop() {
	if i.stop != nil {
		i.stop()
		i.stop = nil
	}
}

func (i *Issuer) start() {
	t := i.t
	t.Helper()
	db, err := sqlite.Open(filepath.Join(i.dir, "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := sealedstore.Of(t.Context(), filepath.Join(i.dir, "seal.key"), db)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	var policy *oidc.Policy
	p := oidc.New(oidc.Config{
		Store: db, Key: key, Policy: func() *oidc.Policy { return policy }, Revoked: func() *trust.Revocations { return nil }, Listen: i.address,
		Users: filepath.Join(i.dir, "users"), Audit: server.NewAudit(db, log), Logger: log,
	})
	if policy, err = p.Compile(i.policy); err != nil {
		t.Fatal(err)
	}
	for _, g := range i.policy.Grants {
		decision, err := p.Answer(t.Context(), policy, server.Call{Caller: g.Caller, Grant: g})
		if err == nil && len(decision.Then) > 0 {
			_, err = db.Commit(t.Context(), store.Txn{If: decision.If, Then: decision.Then})
		}
		if err != nil {
			t.Fatal(err)
		}
		i.Delivered[strings.TrimPrefix(g.Need, "oidc--")] = decision.Answer.Values
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, func() {}) }()
	i.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		db.Close()
	})
	t.Cleanup(i.stop)
	kit.Eventually(t, "the issuer answers", func() bool {
		conn, err := net.Dial("tcp", i.address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

var action = regexp.MustCompile(`<form[^>]* action="([^"]*)"`)

// SignIn signs a person in at the issuer, as a browser does. It opens the URL at, to which a gate
// has redirected the browser, and submits the issuer's form with the given email address. It
// returns the URL to which the issuer redirects the browser, whose host is the public name of the
// site.
func SignIn(t *testing.T, browser *http.Client, at, email string) string {
	t.Helper()
	resp, err := browser.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	for resp.StatusCode/100 == 3 {
		resp.Body.Close()
		to, err := resp.Location()
		if err != nil {
			t.Fatal(err)
		}
		if resp, err = browser.Get(to.String()); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	form := action.FindSubmatch(b)
	if form == nil {
		t.Fatalf("%s: no form: %s", resp.Status, b)
	}
	to, err := resp.Request.URL.Parse(strings.ReplaceAll(string(form[1]), "&amp;", "&"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err = browser.PostForm(to.String(), url.Values{"login": {email}, "password": {Password}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for resp.StatusCode/100 == 3 {
		next, err := resp.Location()
		if err != nil {
			t.Fatal(err)
		}
		if next.Host != to.Host {
			return next.String()
		}
		if resp, err = browser.Get(next.String()); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	return fmt.Sprint(resp.StatusCode)
}
