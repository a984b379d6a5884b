package database

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
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
	for kind, at := range map[string]func(*testing.T) (serveraccount.Server, string){postgresKind: postgresAt, redisKind: redisAt} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, dir := at(t)
			providertest.Run(t, providertest.Suite{
				Kind: Name, Need: "database-wiki-main", Settings: map[string]any{"servers": map[string]serveraccount.Server{"main": s}}, Secret: []string{"password"},
				Make: func(e *providertest.Env) server.AnyKind {
					return server.Any(answering{New(Config{Store: e.Store, Key: e.Key, Dir: dir})})
				},
				Request: Request{Server: "main", Name: "wiki_main", Rotate: 86400, Overlap: 3600},
			})
		})
	}
}

// fixture is the kind without its server, and one database of it.
type fixture struct {
	t       *testing.T
	servers map[string]serveraccount.Server
	want    Request
	grant   document.Grant // none where its kind is empty
	db      store.Store
	now     time.Time
	*Databases
}

const (
	overlap = time.Hour
	rotated = 30 * 24 * time.Hour
)

func newFixture(t *testing.T, s serveraccount.Server, dir, name string) *fixture {
	t.Helper()
	f := &fixture{t: t, servers: map[string]serveraccount.Server{"main": s}, now: time.Now()}
	f.want = Request{Server: "main", Name: name, Rotate: int64(rotated / time.Second), Overlap: int64(overlap / time.Second)}
	f.lose(dir)
	f.grant = document.Grant{
		Caller: kit.ID("node/elm"), Need: "database-wiki-main", Kind: Name, Generation: 1,
		Request: kit.JSON(f.want),
	}
	return f
}

// lose makes a state with nothing in it.
func (f *fixture) lose(dir string) {
	db, err := sqlite.Open(filepath.Join(f.t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { db.Close() })
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		f.t.Fatal(err)
	}
	f.db = db
	f.Databases = New(Config{Store: db, Key: key, Dir: dir, Logger: slog.New(slog.NewTextHandler(f.t.Output(), nil))})
}

func (f *fixture) policy() *serveraccount.Policy[Request] {
	f.t.Helper()
	p := document.Policy{
		Host: "forge", TrustDomain: kit.Domain, Kinds: map[string]json.RawMessage{Name: kit.JSON(map[string]any{"servers": f.servers})},
	}
	if f.grant.Kind != "" {
		p.Grants = []document.Grant{f.grant}
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

// wantActs wants so many audit rows of what was done without a request.
func (f *fixture) wantActs(disabled, dropped int) {
	f.t.Helper()
	if d, r := f.acts(CodeDisabled), f.acts(CodeDropped); d != disabled || r != dropped {
		f.t.Errorf("%d rows of databases that were disabled and %d of dropped ones, want %d and %d", d, r, disabled, dropped)
	}
}

// acts counts the rows of a code.
func (f *fixture) acts(code string) (n int) {
	f.t.Helper()
	entries, _, err := f.db.List(f.t.Context(), server.AuditPrefix)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range entries {
		var r server.Row
		if err := json.Unmarshal(e.Value, &r); err != nil {
			f.t.Fatal(err)
		}
		if r.Kind == Name && r.Outcome == server.Changed && r.Detail["server"] == "main" && r.Detail["database"] != "" && r.Code == code {
			n++
		}
	}
	return n
}

// refused is the message of a refusal, with which a host tries again.
func (f *fixture) refused() string {
	f.t.Helper()
	_, err := f.decide()
	var e *hostapi.Error
	if !errors.As(err, &e) || e.Kind != hostapi.Transient || e.Code != hostapi.CodeUnavailable.Name {
		f.t.Fatalf("%v, want a refusal that is transient", err)
	}
	return e.Message
}

// TestTurns holds that of two processes with one store one at a time works on a database.
func TestTurns(t *testing.T) {
	t.Parallel()
	s, dir := redisAt(t)
	f := newFixture(t, s, dir, "turns_cache")
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	other := New(Config{Store: f.db, Key: key, Dir: dir})
	works := func(context.Context, backend) error { return nil }
	err = f.At(t.Context(), s, f.want.Of(), func(ctx context.Context, _ backend) error {
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		var busy *hostapi.Error
		if err := other.At(ctx, s, f.want.Of(), works); !errors.As(err, &busy) || busy.Code != hostapi.CodeBusy.Name {
			t.Errorf("another process at the same database: %v, want it to wait", err)
		}
		return other.At(t.Context(), s, serveraccount.Name{Server: "main", Account: "turns_other"}, works)
	})
	if err != nil {
		t.Error("another process at another database:", err)
	}
	if err := other.At(t.Context(), s, f.want.Of(), works); err != nil {
		t.Error("another process after this one:", err)
	}
}
