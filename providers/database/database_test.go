package database

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// answering is the kind without its background task.
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

// fixture is the kind without its server, and one of its databases.
type fixture struct {
	providertest.Alone[*serveraccount.Policy[Request]]
	*Databases
	servers map[string]serveraccount.Server
	want    Request
}

const (
	overlap = time.Hour
	rotated = 30 * 24 * time.Hour
)

func newFixture(t *testing.T, s serveraccount.Server, dir, name string) *fixture {
	t.Helper()
	f := &fixture{servers: map[string]serveraccount.Server{"main": s}}
	f.T, f.Now, f.Settings = t, time.Now(), map[string]any{"servers": f.servers}
	f.want = Request{Server: "main", Name: name, Rotate: int64(rotated / time.Second), Overlap: int64(overlap / time.Second)}
	f.lose(dir)
	f.Grant = document.Grant{
		Caller: kit.ID("node/elm"), Need: "database-wiki-main", Kind: Name, Generation: 1,
		Request: kit.JSON(f.want),
	}
	return f
}

// lose replaces the state by an empty one.
func (f *fixture) lose(dir string) {
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		f.T.Fatal(err)
	}
	f.Databases = New(Config{Store: f.NewStore(), Key: key, Dir: dir, Logger: slog.New(slog.NewTextHandler(f.T.Output(), nil))})
	f.Kind = f.Databases
}

// wantActs checks the number of audit rows about acts without a request.
func (f *fixture) wantActs(disabled, dropped int) {
	f.T.Helper()
	if d, r := f.acts(CodeDisabled), f.acts(CodeDropped); d != disabled || r != dropped {
		f.T.Errorf("%d rows of databases that were disabled and %d of dropped ones, want %d and %d", d, r, disabled, dropped)
	}
}

// acts counts the rows of a code.
func (f *fixture) acts(code string) (n int) {
	f.T.Helper()
	entries, _, err := f.Store.List(f.T.Context(), server.AuditPrefix)
	if err != nil {
		f.T.Fatal(err)
	}
	for _, e := range entries {
		var r server.Row
		if err := json.Unmarshal(e.Value, &r); err != nil {
			f.T.Fatal(err)
		}
		if r.Kind == Name && r.Outcome == server.Changed && r.Detail["server"] == "main" && r.Detail["database"] != "" && r.Code == code {
			n++
		}
	}
	return n
}

// TestTurns checks that of two processes with the same store, only one works on a database at a
// time.
func TestTurns(t *testing.T) {
	t.Parallel()
	s, dir := redisAt(t)
	f := newFixture(t, s, dir, "turns_cache")
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	other := New(Config{Store: f.Store, Key: key, Dir: dir})
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
