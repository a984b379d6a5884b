package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dexidp/dex/storage"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/oauth2"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/oidc/dexstore"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

const (
	issuerURL = "http://auth.demo.flor.rete"
	callback  = "http://outline.demo.flor.rete/auth/oidc.callback"
	email     = "alice@demo.flor"
	password  = "correct horse battery staple"
)

var (
	ursula  = kit.ID("node/ursula")
	outline = kit.ID("service/outline")
)

var hash = sync.OnceValue(func() string {
	return string(must(bcrypt.GenerateFromPassword([]byte(password), minCost)))
})

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// fixture is a provider host: the parts that survive a restart, and the running process.
type fixture struct {
	t      *testing.T
	dir    string
	listen string
	open   func() (store.Store, *sealedstore.Key)

	more string         // settings of the kind besides its issuer, as JSON
	want func(*Request) // changes the request of outline; nil for no change

	mu     sync.Mutex
	policy document.Policy
	logs   bytes.Buffer

	revoked atomic.Pointer[trust.Revocations]

	db   store.Store
	p    *Provider
	stop func()
}

// Write collects logs.
func (f *fixture) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logs.Write(b)
}

// inForce is the policy as the server compiles it. It is nil if the policy does not run the kind.
func (f *fixture) inForce() *Policy {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.policy.Kinds == nil {
		return nil
	}
	return must(compile(f.policy))
}

// name puts a policy in force that names an issuer and grants nothing. Without an issuer, the
// policy does not run the kind.
func (f *fixture) name(issuer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy = document.Policy{Cluster: "demo", Host: "drhorrible", TrustDomain: "demo.flor"}
	if issuer != "" {
		f.policy.Kinds = map[string]json.RawMessage{Name: json.RawMessage(`{"issuer":"` + issuer + `"` + f.more + `}`)}
	}
}

// grant puts a policy in force that grants these redirect URIs to outline, or nothing if there are
// none.
func (f *fixture) grant(redirectURIs ...string) {
	f.name(issuerURL)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(redirectURIs) > 0 {
		r := Request{Issuer: issuerURL, Service: outline, RedirectURIs: redirectURIs}
		if f.want != nil {
			f.want(&r)
		}
		body := must(json.Marshal(r))
		f.policy.Grants = []document.Grant{{Caller: ursula, Need: "oidc-outline", Kind: Name, Request: body, Generation: 1}}
	}
}

func newFixture(t *testing.T) *fixture {
	f := prepared(t)
	f.start()
	return f
}

// prepared returns a provider host that does not run yet.
func prepared(t *testing.T) *fixture {
	dir := t.TempDir()
	return newHost(t, dir, func() (store.Store, *sealedstore.Key) {
		db := must(sqlite.Open(filepath.Join(dir, "state.db"), sqlite.Options{}))
		return db, must(sealedstore.Of(t.Context(), filepath.Join(dir, "seal.key"), db))
	})
}

// newHost is a host that does not run yet, with its directory and a state that it opens.
func newHost(t *testing.T, dir string, open func() (store.Store, *sealedstore.Key)) *fixture {
	f := &fixture{t: t, dir: dir, listen: providertest.Loopback(), open: open}
	f.grant(callback)
	users := `[{"email": "Alice@demo.flor", "username": "alice", "userID": "u-1", "hash": "` + hash() + `"}, /* nobody else */]`
	if err := os.WriteFile(filepath.Join(f.dir, "users"), []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f.stop != nil {
			f.stop()
		}
	})
	return f
}

// start runs the provider with the contents of its directory.
func (f *fixture) start() {
	f.t.Helper()
	db, key := f.open()
	f.db = db
	log := slog.New(slog.NewJSONHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
	listen, users := f.listen, filepath.Join(f.dir, "users")
	if policy := f.inForce(); policy != nil && policy.registration != "" {
		listen, users = "", "" // only the cluster's own issuer needs them
	}
	p := New(Config{
		Store:  f.db,
		Key:    key,
		Policy: f.inForce, Revoked: f.revoked.Load,
		Listen: listen,
		Users:  users,

		RegistrationToken: filepath.Join(f.dir, "registration-token"),

		Audit:  server.NewAudit(f.db, log),
		Logger: log,
	})
	f.p = p
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, func() {}) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Errorf("run: %v", err)
		}
		f.db.Close()
	})
	if policy := f.inForce(); policy != nil && policy.registration == "" {
		f.serving(true)
	}
}

// age waits until a repeated refresh no longer gets the same answer as before.
func (f *fixture) age(tokens ...*oauth2.Token) {
	f.t.Helper()
	for _, token := range tokens {
		id, _ := presented(token.RefreshToken)
		if err := dexstore.New(f.db, f.p.cfg.Key).UpdateRefreshToken(f.t.Context(), id, func(r storage.RefreshToken) (storage.RefreshToken, error) {
			r.LastUsed = r.LastUsed.Add(-2 * refreshAgain)
			return r, nil
		}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// serving waits until the issuer's pages are up, or down.
func (f *fixture) serving(up bool) {
	f.t.Helper()
	kit.Eventually(f.t, fmt.Sprintf("serving to be %v", up), func() bool {
		c, err := net.Dial("tcp", f.listen)
		if err == nil {
			c.Close()
		}
		return up == (err == nil)
	})
}

func (f *fixture) restart() {
	f.stop()
	f.start()
}

// rotate puts a policy in force that grants another generation.
func (f *fixture) rotate(generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy.Grants[0].Generation = generation
}

// share puts a policy in force that grants the client of outline to another caller as well.
func (f *fixture) share(caller spiffe.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	other := f.policy.Grants[0]
	other.Caller = caller
	f.policy.Grants = append(f.policy.Grants, other)
}

// decide requests the client of outline in a generation, which the policy grants from now on.
func (f *fixture) decide(generation int) (server.Decision, error) {
	call := f.call(generation) // also changes the policy that inForce returns
	return f.p.Answer(f.t.Context(), f.inForce(), call)
}

// call returns a request for the client.
func (f *fixture) call(generation int) server.Call {
	f.rotate(generation)
	grant := f.policy.Grants[0]
	return server.Call{
		Caller:  grant.Caller,
		Request: hostapi.Request{Need: grant.Need, Generation: generation, Body: grant.Request},
		Grant:   grant,
		Now:     time.Now(),
	}
}

// register decides a request and commits the decision, as the server does.
func (f *fixture) register(generation int) map[string]string {
	f.t.Helper()
	d, err := f.decide(generation)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.db.Commit(f.t.Context(), store.Txn{If: d.If, Then: d.Then}); err != nil {
		f.t.Fatal(err)
	}
	return d.Answer.Values
}
