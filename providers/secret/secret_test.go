package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// answering is the kind without its socket.
type answering struct{ server.Kind[*Policy] }

func kind(e *providertest.Env) server.AnyKind {
	return server.Any(answering{New(Config{Store: e.Store, Key: e.Key})})
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Suite{
		Kind: Name, Need: "secret-wiki-session", Settings: struct{}{}, Make: kind, Secret: []string{"secret"},
		Request: Request{Secret: "session", Generate: "age", Rotate: 86400},
	})
}

// fixture is the kind without its server, with a store that replicas share.
type fixture struct {
	t      *testing.T
	policy document.Policy
	db     store.Store
	*Secrets
}

func newFixture(t *testing.T, grants ...document.Grant) *fixture {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, db: db, Secrets: New(Config{Store: db, Key: key})}
	f.policy = document.Policy{Host: "forge", TrustDomain: kit.Domain, Kinds: map[string]json.RawMessage{Name: json.RawMessage(`{}`)}, Grants: grants}
	return f
}

// grant returns the grant of a reader.
func grant(node string, generation int, r Request) document.Grant {
	return document.Grant{Caller: kit.ID("node/" + node), Need: "secret-node-" + r.Secret, Kind: Name, Generation: generation, Request: kit.JSON(r)}
}

// reads returns the values that the i-th reader of the policy receives at a time, after the commit.
func (f *fixture) reads(i int, now time.Time) map[string]string {
	f.t.Helper()
	compiled, err := f.Compile(f.policy)
	if err != nil {
		f.t.Fatal(err)
	}
	for {
		g := f.policy.Grants[i]
		d, err := f.Answer(f.t.Context(), compiled, server.Call{Caller: g.Caller, Grant: g, Now: now, Request: hostapi.Request{Need: g.Need, Generation: g.Generation, Body: g.Request}})
		if err != nil {
			f.t.Fatal(err)
		}
		if _, err = f.db.Commit(f.t.Context(), store.Txn{If: d.If, Then: d.Then}); errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			f.t.Fatal(err)
		}
		return d.Answer.Values
	}
}

// TestOnce checks that readers on several hosts whose first requests are simultaneous get the same
// secret, over real connections to replicas that share a store.
func TestOnce(t *testing.T) {
	db := filepath.Join(t.TempDir(), "shared.db")
	var logs bytes.Buffer
	var mu sync.Mutex
	nodes := []string{"ursula", "raishan", "elm", "oak"}
	e := providertest.NewEnv(t, nodes...)
	e.Logger = slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return logs.Write(b)
	}), nil))
	e.Share(func() store.Store {
		s, err := sqlite.Open(db, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	e.Runs(Name, struct{}{}, kind)
	r := Request{Secret: "mesh", Generate: "age"}
	for _, n := range nodes {
		e.Grant(kit.ID("node/"+n), "secret-node-mesh", Name, r)
	}
	other := e.Beside("sirius")
	e.Start()
	other.Start()
	var all sync.WaitGroup
	answers := make([]hostapi.Answer, len(nodes))
	for i, n := range nodes {
		at := e
		if i%2 == 1 {
			at = other
		}
		client := at.Client(kit.ID("node/" + n))
		all.Go(func() {
			a, err := client.Do(t.Context(), hostapi.Path(Name), hostapi.Request{Need: "secret-node-mesh", Serial: providertest.Serial, Generation: 1, Body: kit.JSON(r)})
			if err != nil {
				t.Error(err)
			}
			answers[i] = a
		})
	}
	all.Wait()
	for i, a := range answers {
		if a.Values["secret"] == "" || !maps.Equal(a.Values, answers[0].Values) {
			t.Errorf("%s has another secret", nodes[i])
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if secret := strings.TrimSpace(answers[0].Values["secret"]); strings.Contains(logs.String(), secret) || !strings.Contains(logs.String(), "mesh") {
		t.Error("the log has the secret, or nothing at all")
	}
	for _, row := range e.Rows() {
		if b := kit.JSON(row); bytes.Contains(b, []byte("AGE-SECRET-KEY")) {
			t.Error("an audit row has the secret")
		}
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// TestSealed checks that the store contains no readable secret, and that after a reseal the former
// key opens nothing.
func TestSealed(t *testing.T) {
	f := newFixture(t, grant("elm", 1, Request{Secret: "db", Generate: "password", Length: 24}))
	first := f.reads(0, time.Now())["secret"]
	e, err := f.db.Get(t.Context(), prefix+"db")
	if err != nil || bytes.Contains(e.Value, []byte(first)) {
		t.Errorf("the record has the secret, %v", err)
	}
	former, newer := sealedstore.Secret(), sealedstore.Secret()
	old, _ := sealedstore.New(former)
	both, _ := sealedstore.New(newer, former)
	alone, _ := sealedstore.New(newer)
	f.Secrets = New(Config{Store: f.db, Key: old})
	if _, err := f.db.Commit(t.Context(), store.Txn{Then: []store.Op{store.Delete(prefix + "db")}}); err != nil {
		t.Fatal(err)
	}
	first = f.reads(0, time.Now())["secret"]
	if err := New(Config{Store: f.db, Key: both}).Reseal(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Secrets = New(Config{Store: f.db, Key: alone})
	if second := f.reads(0, time.Now())["secret"]; second != first {
		t.Error("another secret after a reseal")
	}
}

// TestRefused checks that a policy that cannot be served is refused before it comes into force.
func TestRefused(t *testing.T) {
	for want, r := range map[string]Request{
		"not the name of one":            {Generate: "hex", Length: 1},
		"want one of age, hex":           {Secret: "a", Generate: "rot13", Length: 1},
		"want 1 to 4096":                 {Secret: "a", Generate: "password"},
		"want 0":                         {Secret: "a", Generate: "ssh", Length: 9},
		"half of that at most":           {Secret: "a", Generate: "hex", Length: 9, Rotate: 100, Overlap: 51},
		"holds two for no time":          {Secret: "a", Generate: "hex", Length: 9, Two: true},
		"overlap of -1 seconds, rotated": {Secret: "a", Generate: "hex", Length: 9, Overlap: -1},
	} {
		f := newFixture(t, grant("elm", 1, r))
		if _, err := f.Compile(f.policy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
}

// TestPublics checks that operators can read only public halves of secrets that exist.
func TestPublics(t *testing.T) {
	f := newFixture(t, grant("elm", 1, Request{Secret: "mesh", Generate: "wireguard"}), grant("elm", 1, Request{Secret: "db", Generate: "hex", Length: 20}))
	now := time.Now()
	if all, err := f.publics(t.Context(), now); err != nil || len(all) != 0 {
		t.Errorf("before any was made: %v, %v", all, err)
	}
	mesh, db := f.reads(0, now), f.reads(1, now)
	all, err := f.publics(t.Context(), now)
	if err != nil || len(all) != 2 || all[0].Secret != "db" || len(all[0].Public) != 0 || !slices.Equal(all[1].Public, []string{strings.TrimSpace(mesh["public"])}) {
		t.Errorf("%+v, %v", all, err)
	}
	text := fmt.Sprint(all)
	if strings.Contains(text, db["secret"]) || strings.Contains(text, strings.TrimSpace(mesh["secret"])) {
		t.Error("a private half among public ones")
	}
}

// TestSweep checks that a secret that no policy names is deleted after 30 days, and is unchanged if
// a policy names it again earlier.
func TestSweep(t *testing.T) {
	f := newFixture(t, grant("elm", 1, Request{Secret: "a", Generate: "hex", Length: 20}))
	now := time.Now()
	first := f.reads(0, now)["secret"]
	sweep := func(days int, named bool) {
		t.Helper()
		p := &Policy{specs: map[string]spec{}}
		if named {
			p.specs["a"] = spec{}
		}
		if err := f.sweep(t.Context(), now.AddDate(0, 0, days), p); err != nil {
			t.Fatal(err)
		}
	}
	sweep(0, false)
	sweep(29, false)
	sweep(29, true)
	sweep(30, false)
	sweep(59, false)
	if f.reads(0, now)["secret"] != first {
		t.Error("it is another within 30 days")
	}
	sweep(61, false)
	if rest, _, err := f.db.List(t.Context(), "secret/"); err != nil || len(rest) != 0 {
		t.Errorf("what is left: %v, %v", rest, err)
	}
}
