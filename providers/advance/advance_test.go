package advance

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/rollout"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
)

// site is a config provider whose rollout of serial 20 to a, then b, is at work.
type site struct {
	*Runner
	t   *testing.T
	now time.Time
}

func newSite(t *testing.T) *site {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := &site{&Runner{Archive: archive.Archive{Store: db}, Kind: "config", Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}, t, time.Now()}
	key := kit.SigningKey("demo-1")
	plan := &document.Rollout{Waves: [][]string{{"a"}, {"b"}}, Healthy: 60, Within: 600}
	s.report("a", 10, "active")
	for _, trees := range [][]archive.SignedTree{{tree(key, 10, "former", nil)}, {tree(key, 20, "next", plan), tree(key, 21, "former", nil)}} {
		var text strings.Builder
		if err := trees[0].Encode(&text, trees[1:]...); err != nil {
			t.Fatal(err)
		}
		r, err := archive.NewStreamReader(strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Archive.Import(t.Context(), r, archive.Terms{Signers: signers.Any(key.ToPublicKey().String()), Keep: 3, Host: "p", Before: Before(s.Archive)}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func tree(key signature.SecretKey, serial int64, note string, plan *document.Rollout) archive.SignedTree {
	all := map[string][]document.Document{}
	for _, h := range []string{"p", "a", "b"} {
		policy := document.Policy{Cluster: "demo", Host: h, TrustDomain: kit.Domain, Provider: map[string]document.Listening{}, Kinds: map[string]json.RawMessage{"note": kit.JSON(note)}}
		if h == "p" {
			policy.Rollout = plan
		}
		all[h] = []document.Document{kit.Document(serial, policy)}
	}
	made, err := archive.Sign(all, key, time.Now())
	if err != nil {
		panic(err)
	}
	return made
}

// report records the last report of a host, with a unit.
func (s *site) report(host string, serial int64, unit string) {
	s.t.Helper()
	r := hostreport.Report{Format: document.NewestFormat, Documents: []document.Reported{{Kind: document.DocManifest, Serial: serial}},
		Units: []hostreport.Unit{{Name: "wiki.service", Active: unit}}, Forwarder: &hostreport.Forwarder{State: "running"}}
	received := hostreport.Kept{Received: unixtime.Of(s.now), Report: kit.JSON(r)}
	if _, err := s.Archive.Commit(s.t.Context(), store.Txn{Then: []store.Op{store.Put(server.ReportPrefix+host, kit.JSON(received))}}); err != nil {
		s.t.Fatal(err)
	}
}

// after steps once, so much later.
func (s *site) after(d time.Duration) rollout.State {
	s.t.Helper()
	s.now = s.now.Add(d)
	if err := s.Step(s.t.Context(), s.now); err != nil {
		s.t.Fatal(err)
	}
	return s.state()
}

func (s *site) state() rollout.State {
	s.t.Helper()
	r, err := s.Archive.Rollout(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return r.State
}

// rows returns the audit rows of a rollout.
func (s *site) rows() (all []server.Row) {
	s.t.Helper()
	entries, _, err := s.Archive.List(s.t.Context(), server.AuditPrefix)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		var row server.Row
		if err := json.Unmarshal(e.Value, &row); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, row)
	}
	return all
}

// Steps go on from the store: another process takes over whenever one dies. b never reported,
// and is not waited for.
func TestSteps(t *testing.T) {
	s := newSite(t)
	s.report("a", 20, "active")
	if is := s.after(time.Second); is.Wave != 1 || is.Steady.IsZero() {
		t.Errorf("%+v", is)
	}
	s.Runner = &Runner{Archive: s.Archive, Kind: s.Kind, Logger: s.Logger}
	if is := s.after(61 * time.Second); is.Wave != 2 {
		t.Errorf("%+v", is)
	}
	s.after(time.Second)
	if is := s.after(62 * time.Second); is.Status != rollout.Done {
		t.Errorf("%+v", is)
	}
	rows := s.rows()
	if len(rows) != 2 || rows[0].Detail["after"] != "serial 20: active, wave 2 of 2" || !strings.HasPrefix(rows[1].Message, "serial 20: done") {
		t.Errorf("%+v", rows)
	}
}

// mortal is a store whose process dies with the next commit, or after it.
type mortal struct {
	store.Store
	after bool
}

var errDead = errors.New("killed")

func (m mortal) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if m.after {
		if _, err := m.Store.Commit(ctx, txn); err != nil {
			return 0, err
		}
	}
	return 0, errDead
}

// A step is in the store with its row, or neither is; it is not repeated.
func TestStepKilled(t *testing.T) {
	for _, after := range []bool{false, true} {
		s := newSite(t)
		s.report("a", 20, "failed")
		alive := s.Archive.Store
		s.Archive.Store = mortal{alive, after}
		if err := s.Step(t.Context(), s.now); !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		s.Archive.Store = alive
		if is := s.state(); (is.Status == rollout.Stopped) != after || len(s.rows()) != map[bool]int{true: 1}[after] {
			t.Errorf("%+v, %+v", is, s.rows())
		}
		if is := s.after(time.Second); is.Status != rollout.Stopped || len(s.rows()) != 1 {
			t.Errorf("%+v, %+v", is, s.rows())
		}
		if v, err := s.Archive.Newest(t.Context()); err != nil || v.Serial != 21 {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

// racing aborts the rollout before the first commit through it.
type racing struct {
	store.Store
	s *site
}

func (r *racing) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if s := r.s; s != nil {
		r.s = nil
		if _, _, err := Do(ctx, archive.Archive{Store: r.Store}, Abort, server.Row{Time: s.now, Caller: "spiffe://demo.flor/user/alice"}); err != nil {
			return 0, err
		}
	}
	return r.Store.Commit(ctx, txn)
}

// An operator who aborts while the provider takes a step has the last word.
func TestOperatorMeanwhile(t *testing.T) {
	s := newSite(t)
	s.report("a", 20, "failed")
	s.Archive.Store = &racing{s.Archive.Store, s}
	if is := s.after(time.Second); is.Status != rollout.Aborted || is.Reason != "by user/alice" {
		t.Errorf("%+v", is)
	}
	if len(s.rows()) != 1 {
		t.Errorf("%+v", s.rows())
	}
	var out strings.Builder
	status, err := StatusOf(t.Context(), s.Archive)
	if err == nil {
		err = status.Print(&out)
	}
	if err != nil || !strings.HasPrefix(out.String(), "serial 20: aborted, wave 1 of 2, hosts are offered the documents of serial 10 again: by user/alice\nbefore it serial 10; began ") {
		t.Errorf("%s, %v", &out, err)
	}
}

// TestClaims checks that claims of hosts are kept in the state of the rollout, with an audit row
// for each change, and that nothing is written for a host that has to wait.
func TestClaims(t *testing.T) {
	s := newSite(t)
	budgets := []document.Budget{{Tags: []string{"etcd"}, Most: 1, Hosts: []string{"a", "b"}}}
	row := server.Row{Time: s.now, Kind: "control", Caller: "spiffe://demo.flor/user/alice"}
	s.report("a", 20, "active")
	s.report("b", 10, "active")
	claim := func(host, want string) {
		t.Helper()
		waits, written, err := Claim(t.Context(), s.Archive, budgets, host, time.Minute, row)
		if err != nil || waits != want {
			t.Fatalf("%s: %q, %v, want %q", host, waits, err, want)
		}
		if (written.Outcome == server.Granted) != (want == "") {
			t.Errorf("%s: the row %+v", host, written)
		}
	}
	claim("a", "")
	claim("b", "b: waits for the budget of at most 1 at once of hosts with tags etcd: a: is being deployed by user/alice")
	r, err := s.Archive.Rollout(t.Context())
	if err != nil || r.Status != rollout.Active || len(r.Claims) != 1 {
		t.Fatalf("%+v, %v", r.State, err)
	}
	if _, err := Release(t.Context(), s.Archive, "a", row); err != nil {
		t.Fatal(err)
	}
	claim("b", "")
}
