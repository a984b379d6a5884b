package git

import (
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
)

// answering is the kind without its work of its own.
type answering struct {
	server.Kind[*serveraccount.Policy[Request]]
}

func TestConformance(t *testing.T) {
	for kind, at := range map[string]func(*testing.T) (serveraccount.Server, string){softServeKind: softAt, forgejoKind: forgejoAt} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f, dir := at(t)
			repository := map[string]string{softServeKind: "infra", forgejoKind: "ops/infra"}[kind]
			providertest.Run(t, providertest.Suite{
				Kind: Name, Need: "git-ci-token", Settings: map[string]any{"forges": map[string]serveraccount.Server{"forge": f}}, Secret: []string{"token", "credentials"},
				Make: func(e *providertest.Env) server.AnyKind {
					return server.Any(answering{New(Config{Store: e.Store, Key: e.Key, Dir: dir})})
				},
				Request: Request{Forge: "forge", Account: "florete-conformance", Repositories: []string{repository}, Access: read, Lifetime: 86400},
			})
		})
	}
}

// fixture is the kind without its server, and one token of it.
type fixture struct {
	t      *testing.T
	forges map[string]serveraccount.Server
	want   Request
	grant  document.Grant // none where its kind is empty
	others []document.Grant
	db     store.Store
	key    *sealedstore.Key
	now    time.Time
	*Tokens
}

const lifetime = 12 * time.Hour

func newFixture(t *testing.T, f serveraccount.Server, dir, user string, repositories ...string) *fixture {
	t.Helper()
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	fix := &fixture{t: t, forges: map[string]serveraccount.Server{"forge": f}, key: key, now: time.Now()}
	fix.lose(dir)
	fix.wants(Request{Forge: "forge", Account: user, Repositories: repositories, Access: read, Lifetime: int64(lifetime / time.Second)})
	return fix
}

// wants changes what the policy grants.
func (f *fixture) wants(r Request) {
	f.want = r
	f.grant = document.Grant{Caller: kit.ID("node/elm"), Need: "git-ci-token", Kind: Name, Generation: max(f.grant.Generation, 1), Request: kit.JSON(r)}
}

// lose makes a state with nothing in it.
func (f *fixture) lose(dir string) {
	db, err := sqlite.Open(filepath.Join(f.t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { db.Close() })
	f.db = db
	f.Tokens = New(Config{Store: db, Key: f.key, Dir: dir, Logger: slog.New(slog.NewTextHandler(f.t.Output(), nil))})
}

func (f *fixture) policy() *serveraccount.Policy[Request] {
	f.t.Helper()
	p := document.Policy{
		Host: "forge", TrustDomain: kit.Domain, Kinds: map[string]json.RawMessage{Name: kit.JSON(map[string]any{"forges": f.forges})},
	}
	if f.grant.Kind != "" {
		p.Grants = append([]document.Grant{f.grant}, f.others...)
	}
	compiled, err := f.Compile(p)
	if err != nil {
		f.t.Fatal(err)
	}
	return compiled
}

// decide is what an answer would be, before it is committed.
func (f *fixture) decide() (server.Decision, error) {
	f.t.Helper()
	g := f.grant
	return f.Answer(f.t.Context(), f.policy(), server.Call{
		Caller: g.Caller, Grant: g, Now: f.now, Request: hostapi.Request{Need: g.Need, Generation: g.Generation, Body: g.Request},
	})
}

// reads is what the service has after its host fetched it.
func (f *fixture) reads() map[string]string {
	f.t.Helper()
	d, err := f.decide()
	if err == nil {
		_, err = f.db.Commit(f.t.Context(), store.Txn{If: d.If, Then: d.Then})
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return d.Answer.Values
}

// passes lets time pass, and what is due happen.
func (f *fixture) passes(d time.Duration) {
	f.t.Helper()
	f.now = f.now.Add(d)
	if err := f.Sweep(f.t.Context(), f.now, f.policy()); err != nil {
		f.t.Fatal(err)
	}
}

// refused checks the message of a refusal, with which a host tries again.
func (f *fixture) refused(want string) {
	f.t.Helper()
	_, err := f.decide()
	var e *hostapi.Error
	if !errors.As(err, &e) || e.Kind != hostapi.Transient || e.Code != hostapi.CodeUnavailable.Name || !strings.Contains(e.Message, want) {
		f.t.Fatalf("%v, want a refusal that is transient: %s", err, want)
	}
}

func TestPolicy(t *testing.T) {
	good := Request{Forge: "forge", Account: "florete-ci-token", Repositories: []string{"ops/infra"}, Access: read, Lifetime: 3600}
	forge := serveraccount.Server{Kind: forgejoKind, Address: "127.0.0.1:3000", User: "admin", Host: "forge.demo.flor.rete", Port: 3000}
	for want, change := range map[string]func(*Request, *serveraccount.Server){
		"":                             func(*Request, *serveraccount.Server) {},
		`forge "other": want one of`:   func(r *Request, _ *serveraccount.Server) { r.Forge = "other" },
		`account "a--b"`:               func(r *Request, _ *serveraccount.Server) { r.Account = "a--b" },
		`access "all"`:                 func(r *Request, _ *serveraccount.Server) { r.Access = "all" },
		"lifetime of 3599 seconds":     func(r *Request, _ *serveraccount.Server) { r.Lifetime = 3599 },
		"repositories: want one":       func(r *Request, _ *serveraccount.Server) { r.Repositories = []string{} },
		`repository "infra"`:           func(r *Request, _ *serveraccount.Server) { r.Repositories = []string{"infra"} },
		`repository "ops/in fra"`:      func(r *Request, _ *serveraccount.Server) { r.Repositories = []string{"ops/in fra"} },
		`repository "ops/../x"`:        func(r *Request, _ *serveraccount.Server) { r.Repositories = []string{"ops/../x"} },
		`kind "gitlab": want one of`:   func(_ *Request, f *serveraccount.Server) { f.Kind = "gitlab" },
		"user: want one to act as":     func(_ *Request, f *serveraccount.Server) { f.User = "" },
		`host "", port 3000`:           func(_ *Request, f *serveraccount.Server) { f.Host = "" },
		"address: address 127.0.0.1: ": func(_ *Request, f *serveraccount.Server) { f.Address = "127.0.0.1" },
		"keep 1: nothing is dropped":   func(_ *Request, f *serveraccount.Server) { f.Keep = 1 },
	} {
		r, f := good, forge
		change(&r, &f)
		_, err := New(Config{}).Compile(document.Policy{
			Host: "forge", TrustDomain: kit.Domain, Kinds: map[string]json.RawMessage{Name: kit.JSON(map[string]any{"forges": map[string]serveraccount.Server{"forge": f}})},
			Grants: []document.Grant{{Caller: kit.ID("node/elm"), Need: "git-ci-token", Kind: Name, Generation: 1, Request: kit.JSON(r)}},
		})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
