package archive_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/rollout"
)

// budgeted are waves with a budget of one for a and p.
func budgeted() *document.Rollout {
	plan := *waves
	plan.Budgets = []document.Budget{{Tags: []string{"etcd"}, Most: 1, Hosts: []string{"a", "p"}}}
	return &plan
}

// begunBudgeted is begun with a budget.
func begunBudgeted(t *testing.T) *shop {
	s := newShop(t)
	if _, err := s.offer(archive.Terms{}, s.planned(10, "former", waves)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.offer(archive.Terms{}, s.planned(20, "next", budgeted()), s.tree(19, "bridge", "p"), s.planned(21, "former", waves)); err != nil {
		t.Fatal(err)
	}
	return s
}

func stages(all map[string]rollout.Stage) func(rollout.State) rollout.State {
	return func(s rollout.State) rollout.State { s.Stages = all; return s }
}

// TestOfferedUnderBudget checks which documents hosts with a budget are offered at each stage, and
// that versions are kept until all of them have gone back.
func TestOfferedUnderBudget(t *testing.T) {
	s := begunBudgeted(t)
	s.wantOffered("10 10 10") // p has a budget, and waits for its policy
	s.set(stages(map[string]rollout.Stage{"p": rollout.StagePolicy}))
	s.wantOffered("19 10 10")
	s.set(wave(2))
	s.wantOffered("19 10 20")
	s.set(stages(map[string]rollout.Stage{"p": rollout.StageVersion, "a": rollout.StageVersion}))
	s.wantOffered("19 20 20")
	r, err := s.Rollout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Again != 21 {
		t.Errorf("hosts go back to serial %d", r.Again)
	}
	waited, err := s.Waited(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range waited {
		if h.New {
			t.Errorf("%+v is new", h)
		}
	}
	s.set(func(r rollout.State) rollout.State { return r.Stop(rollout.Stopped, "x", time.Now()) })
	s.wantOffered("19 20 21") // b has no budget
	if got := serials(t, s.Archive); !slices.Equal(got, []int64{21, 20, 10}) {
		t.Errorf("versions %v", got)
	}
	for _, atOnce := range []bool{false, true} {
		_, err := s.offer(archive.Terms{Keep: 1, AtOnce: atOnce}, s.planned(30, "other", waves))
		want := map[bool]string{false: "is going back as budgets permit", true: "permits at most 1 at once of hosts with tags etcd"}[atOnce]
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("at once %t: %v, want …%s…", atOnce, err, want)
		}
		s.wantOffered("19 20 21") // these imports have swept
	}
	s.set(stages(map[string]rollout.Stage{"p": rollout.StageVersion, "a": rollout.StageBack}))
	s.wantOffered("19 21 21")
	s.set(stages(map[string]rollout.Stage{"p": rollout.StageBack, "a": rollout.StageBack}))
	s.wantOffered("21 21 21")
	s.set(end(rollout.Stopped))
	s.wantOffered("21 21 21")
}

// TestClosing checks that hosts in budgets keep the policy of both versions until it is their turn,
// and that no policy with a lower serial follows one of the version.
func TestClosing(t *testing.T) {
	s := begunBudgeted(t)
	s.set(wave(2))
	s.set(stages(map[string]rollout.Stage{"p": rollout.StageVersion, "a": rollout.StageVersion}))
	s.set(func(r rollout.State) rollout.State { r.Closing = true; return r })
	s.wantOffered("19 20 20")
	s.set(stages(map[string]rollout.Stage{"p": rollout.StageWhole, "a": rollout.StageVersion}))
	s.wantOffered("20 20 20")
	s.set(func(r rollout.State) rollout.State { return r.Stop(rollout.Aborted, "x", time.Now()) })
	s.wantOffered("20 20 21")
}

// TestBeyondBudget checks that a version reaches all hosts at once only if the operator says that
// the budgets are exceeded.
func TestBeyondBudget(t *testing.T) {
	s := newShop(t)
	if _, err := s.offer(archive.Terms{}, s.planned(10, "former", budgeted())); err != nil { // the first reaches all
		t.Fatal(err)
	}
	before := s.keysIn()
	const want = "at most 1 at once of hosts with tags etcd: publish it without --at-once, or add --beyond-budget"
	if _, err := s.offer(archive.Terms{AtOnce: true}, s.planned(20, "next", budgeted())); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want …%s", err, want)
	}
	if _, err := s.offer(archive.Terms{AtOnce: true}, s.planned(20, "next", nil)); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("to a version without budgets: %v, want …%s", err, want)
	}
	if after := s.keysIn(); !slices.Equal(before, after) {
		t.Errorf("left %q, before %q", after, before)
	}
	if _, err := s.offer(archive.Terms{AtOnce: true, BeyondBudget: true}, s.planned(20, "next", budgeted())); err != nil {
		t.Fatal(err)
	}
	s.wantOffered("20 20 20")
	for i, terms := range []archive.Terms{{AtOnce: true}, {AtOnce: true, BeyondBudget: true}} { // during a rollout with budgets
		s := begunBudgeted(t)
		_, err := s.offer(terms, []archive.SignedTree{s.planned(30, "other", nil)}...)
		if got := fmt.Sprint(err == nil); got != fmt.Sprint(terms.BeyondBudget) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestBudgetRemoved checks that a version that removes a budget is rolled out within it, and is
// refused if it has no rollout. A host that it removes is no longer in the budget.
func TestBudgetRemoved(t *testing.T) {
	s := newShop(t)
	former := budgeted()
	former.Budgets[0].Hosts = []string{"a", "gone", "p"}
	if _, err := s.offer(archive.Terms{}, s.planned(10, "former", former)); err != nil {
		t.Fatal(err)
	}
	before := s.keysIn()
	const want = "serial 20 has no rollout and would be offered to all hosts at once, and rollout.atOnce of serial 10 permits at most 1 at once of hosts with tags etcd: "
	if _, err := s.offer(archive.Terms{}, s.planned(20, "next", nil)); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want …%s…", err, want)
	}
	if after := s.keysIn(); !slices.Equal(before, after) {
		t.Errorf("left %q, before %q", after, before)
	}
	if _, err := s.offer(archive.Terms{}, s.planned(20, "next", waves), s.planned(21, "former", former)); err != nil {
		t.Fatal(err)
	}
	r, err := s.Rollout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Budgets) != 1 || !slices.Equal(r.Budgets[0].Hosts, []string{"a", "p"}) || r.Budgets[0].Most != 1 {
		t.Errorf("budgets of the rollout are %v, want those of serial 10", r.Budgets)
	}

	raised := budgeted()
	raised.Budgets[0].Most = 2
	s = newShop(t)
	for _, trees := range [][]archive.SignedTree{{s.planned(10, "former", budgeted())}, {s.planned(20, "next", raised), s.planned(21, "former", budgeted())}} {
		if _, err := s.offer(archive.Terms{}, trees...); err != nil {
			t.Fatal(err)
		}
	}
	if r, err = s.Rollout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.Budgets) != 1 || r.Budgets[0].Most != 2 {
		t.Errorf("budgets of the rollout are %v, want the new version's alone", r.Budgets)
	}
}

// TestClaimsStay checks that a host that an operator deploys stays claimed when a rollout begins.
func TestClaimsStay(t *testing.T) {
	s := begunBudgeted(t)
	claim := rollout.Claim{By: "user/alice", Until: unixtime.Of(time.Now().Add(time.Hour))}
	s.set(func(r rollout.State) rollout.State {
		r.Claims = map[string]rollout.Claim{"a": claim}
		return r.End(rollout.Done, "", time.Now())
	})
	if _, err := s.offer(archive.Terms{}, s.planned(30, "other", budgeted()), s.planned(31, "next", budgeted())); err != nil {
		t.Fatal(err)
	}
	r, err := s.Rollout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Serial != 30 || r.Claims["a"].By != claim.By {
		t.Errorf("rollout of serial %d has the claims %v, want that of %s", r.Serial, r.Claims, claim.By)
	}
}
