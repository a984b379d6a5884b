package git

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
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
	providertest.Alone[*serveraccount.Policy[Request]]
	*Tokens
	forges map[string]serveraccount.Server
	want   Request
	key    *sealedstore.Key
}

const lifetime = 12 * time.Hour

func newFixture(t *testing.T, f serveraccount.Server, dir, user string, repositories ...string) *fixture {
	t.Helper()
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	fix := &fixture{forges: map[string]serveraccount.Server{"forge": f}, key: key}
	fix.T, fix.Now, fix.Settings = t, time.Now(), map[string]any{"forges": fix.forges}
	fix.lose(dir)
	fix.wants(Request{Forge: "forge", Account: user, Repositories: repositories, Access: read, Lifetime: int64(lifetime / time.Second)})
	return fix
}

// wants changes what the policy grants.
func (f *fixture) wants(r Request) {
	f.want = r
	f.Grant = document.Grant{Caller: kit.ID("node/elm"), Need: "git-ci-token", Kind: Name, Generation: max(f.Grant.Generation, 1), Request: kit.JSON(r)}
}

// lose makes a state with nothing in it.
func (f *fixture) lose(dir string) {
	f.Tokens = New(Config{Store: f.NewStore(), Key: f.key, Dir: dir, Logger: slog.New(slog.NewTextHandler(f.T.Output(), nil))})
	f.Kind = f.Tokens
}

// refused checks the message of a refusal, with which a host tries again.
func (f *fixture) refused(want string) {
	f.T.Helper()
	if message := f.Refused(); !strings.Contains(message, want) {
		f.T.Fatalf("%s, want %s", message, want)
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
