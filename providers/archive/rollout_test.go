package archive_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/rollout"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// waves are a to begin with, then b; p provides, and nobody waits for it.
var waves = &document.Rollout{Waves: [][]string{{"a"}, {"b"}}, Healthy: 60, Within: 600}

// planned is a tree of p, a and b, with a plan in the policy of p.
func (s *shop) planned(serial int64, note string, plan *document.Rollout) archive.SignedTree {
	all := map[string][]document.Document{}
	for _, h := range []string{"p", "a", "b"} {
		policy := document.Policy{Cluster: "demo", Host: h, TrustDomain: kit.Domain, Provider: map[string]document.Listening{},
			Kinds: map[string]json.RawMessage{"note": kit.JSON(note)}}
		if h == "p" {
			policy.Rollout = plan
		}
		all[h] = []document.Document{kit.Document(serial, policy)}
	}
	tree, err := archive.Sign(all, s.key, time.Now())
	if err != nil {
		panic(err)
	}
	return tree
}

// offer imports trees as florctl publish sends them, to the provider p.
func (s *shop) offer(terms archive.Terms, trees ...archive.SignedTree) (bool, error) {
	s.t.Helper()
	var b bytes.Buffer
	if err := trees[0].Encode(&b, trees[1:]...); err != nil {
		s.t.Fatal(err)
	}
	r, err := archive.NewStreamReader(&b)
	if err != nil {
		s.t.Fatal(err)
	}
	terms.Signers, terms.Host = s.keys(), "p"
	if terms.Keep == 0 {
		terms.Keep = 3
	}
	_, changed, err := s.Import(s.t.Context(), r, terms)
	return changed, err
}

// offered are the serials that p, a and b are offered.
func (s *shop) offered() string {
	s.t.Helper()
	var all []string
	for _, host := range []string{"p", "a", "b"} {
		documents, _, err := s.Documents(s.t.Context(), host, "")
		if err != nil || len(documents) != 1 {
			s.t.Fatal(host, documents, err)
		}
		var e document.Envelope
		if err := json.Unmarshal([]byte(documents[0].Envelope), &e); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, fmt.Sprint(e.Serial))
	}
	return strings.Join(all, " ")
}

func (s *shop) wantOffered(want string) {
	s.t.Helper()
	if got := s.offered(); got != want {
		s.t.Fatalf("p, a and b are offered %s, want %s", got, want)
	}
}

// set brings the rollout to a state.
func (s *shop) set(change func(rollout.State) rollout.State) {
	s.t.Helper()
	r, err := s.Rollout(s.t.Context())
	if err == nil {
		err = s.SetRollout(s.t.Context(), r, change(r.State))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// begun is a rollout of serial 20 with a bridge of 19 that goes back to 10 as 21.
func begun(t *testing.T) *shop {
	s := newShop(t)
	if _, err := s.offer(archive.Terms{}, s.planned(10, "former", waves)); err != nil {
		t.Fatal(err)
	}
	s.wantOffered("10 10 10")
	if _, err := s.offer(archive.Terms{}, s.rollout()...); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shop) rollout() []archive.SignedTree {
	return []archive.SignedTree{s.planned(20, "next", waves), s.tree(19, "bridge", "p"), s.planned(21, "former", waves)}
}

func wave(n int) func(rollout.State) rollout.State {
	return func(s rollout.State) rollout.State { s.Wave = n; return s }
}

func end(status rollout.Status) func(rollout.State) rollout.State {
	return func(s rollout.State) rollout.State { return s.End(status, "", time.Now()) }
}

// A host is offered the version of its wave, a provider host the bridge in all of them.
func TestOffered(t *testing.T) {
	s := begun(t)
	s.wantOffered("19 10 10")
	before, _, err := s.Documents(t.Context(), "a", "")
	if err != nil {
		t.Fatal(err)
	}
	tag := (hostapi.Artifact{Documents: before}).Tag()
	if _, same, err := s.Documents(t.Context(), "a", tag); err != nil || !same {
		t.Errorf("with the tag %s of these: %t, %v", tag, same, err)
	}
	s.set(wave(1))
	s.wantOffered("19 20 10")
	if _, same, err := s.Documents(t.Context(), "a", tag); err != nil || same {
		t.Errorf("with the tag %s of those before: %t, %v", tag, same, err)
	}
	r, err := s.Rollout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waited, err := s.Waited(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, h := range waited {
		hosts = append(hosts, fmt.Sprint(h.Name, h.Wave, " ", h.Serial))
	}
	if got := strings.Join(hosts, ", "); got != "a1 20, b2 20, p0 19" {
		t.Error(got)
	}
	s.set(wave(2))
	s.wantOffered("19 20 20")
	s.set(end(rollout.Done))
	s.wantOffered("20 20 20")
	if err := s.SetRollout(t.Context(), r, r.State); err == nil {
		t.Error("a rollout that changed meanwhile is changed")
	}
}

// TestChanges checks that a rollout wakes hosts that wait for changed documents.
func TestChanges(t *testing.T) {
	s := begun(t)
	next, stop := iter.Pull2(s.Changes(t.Context()))
	defer stop()
	changed := func(before int64) int64 {
		t.Helper()
		revision, err, _ := next()
		if err != nil || revision <= before {
			t.Fatalf("revision %d, %v, want one after %d", revision, err, before)
		}
		return revision
	}
	at := changed(0)
	s.set(wave(1))
	at = changed(at)
	again, stop2 := iter.Pull2(s.Changes(t.Context()))
	defer stop2()
	if revision, err, _ := again(); err != nil || revision != at {
		t.Errorf("who begins to follow now is at %d, %v, want %d", revision, err, at)
	}
	s.set(end(rollout.Aborted))
	changed(at)
}

// Going back needs no key: the former documents are there under a serial above.
func TestGoesBack(t *testing.T) {
	for _, status := range []rollout.Status{rollout.Stopped, rollout.Aborted} {
		s := begun(t)
		s.set(wave(1))
		s.set(end(status))
		s.wantOffered("21 21 21")
		if got := serials(t, s.Archive); !slices.Equal(got, []int64{21, 20, 10}) {
			t.Errorf("versions %v", got)
		}
		s.want(s.planned(21, "former", waves))
		if _, err := s.offer(archive.Terms{}, s.planned(30, "next", waves), s.planned(31, "former", waves)); err != nil {
			t.Fatal(err)
		}
		s.wantOffered("30 30 21") // without a bridge the first wave begins at once
	}
}

// A group that has a window is offered nothing before that.
func TestOfferedInWindow(t *testing.T) {
	s := newShop(t)
	plan := *waves
	plan.Waves = [][]string{{"a", "b"}}
	plan.Maintenance = []document.Maintenance{{Group: "eu", Hosts: []string{"b"}}}
	if _, err := s.offer(archive.Terms{}, s.planned(10, "former", nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.offer(archive.Terms{}, s.planned(20, "next", &plan), s.planned(21, "former", nil)); err != nil {
		t.Fatal(err)
	}
	s.wantOffered("20 20 10")
	s.set(func(s rollout.State) rollout.State { s.Opened = map[string]int{"eu": 1}; return s })
	s.wantOffered("20 20 20")
}

func TestRolloutRefused(t *testing.T) {
	s := begun(t)
	before := s.keysIn()
	next := s.planned(30, "other", waves)
	for name, c := range map[string]struct {
		trees []archive.SignedTree
		want  string
	}{
		"another meanwhile": {[]archive.SignedTree{next, s.planned(31, "next", waves)}, "serial 20 is being rolled out, and is at wave 0 of 2: wait until that has ended"},
	} {
		if _, err := s.offer(archive.Terms{}, c.trees...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want …%s…", name, err, c.want)
		}
	}
	if changed, err := s.offer(archive.Terms{}, s.rollout()...); changed || err != nil {
		t.Errorf("the same again: %v, %v", changed, err)
	}
	if after := s.keysIn(); !slices.Equal(before, after) {
		t.Errorf("left %q, before %q", after, before)
	}
	s.set(end(rollout.Done))
	for name, c := range map[string]struct {
		trees []archive.SignedTree
		want  string
	}{
		"nothing to go back to":     {[]archive.SignedTree{next}, "rolled out in 2 waves, and the documents to go back to are missing"},
		"another to go back to":     {[]archive.SignedTree{next, s.planned(31, "former", waves)}, "not those of serial 20"},
		"going back to the past":    {[]archive.SignedTree{next, s.planned(20, "next", waves)}, "documents of serial 20 follow those of 30, and 20 is served"},
		"a bridge of the past":      {[]archive.SignedTree{next, s.tree(15, "bridge", "p"), s.planned(31, "next", waves)}, "documents of serial 15 follow"},
		"a bridge alone":            {[]archive.SignedTree{next, s.tree(29, "bridge", "p")}, "are missing"},
		"a bridge of others":        {[]archive.SignedTree{next, s.tree(29, "bridge", "x"), s.planned(31, "next", waves)}, "x has other documents there"},
		"a plan that is not there":  {[]archive.SignedTree{s.planned(30, "other", nil), s.planned(31, "next", waves)}, "has no rollout"},
		"others signed what is for": {[]archive.SignedTree{next, providertest.Tree(kit.SigningKey("x-1"), 31, "next", "p", "a", "b")}, "does not verify"},
	} {
		if _, err := s.offer(archive.Terms{}, c.trees...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want …%s…", name, err, c.want)
		}
		s.wantOffered("20 20 20")
	}
}

// An operator who publishes to all at once ends the rollout.
func TestAtOnce(t *testing.T) {
	for serial, note := range map[int64]string{20: "next", 30: "other"} {
		s := begun(t)
		s.set(wave(1))
		if changed, err := s.offer(archive.Terms{AtOnce: true}, s.planned(serial, note, waves)); !changed || err != nil {
			t.Fatal(changed, err)
		}
		want := fmt.Sprint(serial)
		s.wantOffered(want + " " + want + " " + want)
		if r, err := s.Rollout(t.Context()); err != nil || r.Status != rollout.Superseded || r.Serial != 20 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestKeptDuringRollout checks that versions of a rollout are kept until it ends, and no longer.
func TestKeptDuringRollout(t *testing.T) {
	s := newShop(t)
	for i, trees := range [][]archive.SignedTree{{s.planned(10, "former", waves)}, s.rollout()} {
		if _, err := s.offer(archive.Terms{Keep: 1}, trees...); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := s.offer(archive.Terms{Keep: 1}, s.planned(30, "x", waves)); err == nil {
		t.Fatal("another rollout began")
	}
	s.wantOffered("19 10 10")
	s.set(end(rollout.Done))
	if _, err := s.offer(archive.Terms{Keep: 1, AtOnce: true}, s.planned(40, "y", nil)); err != nil {
		t.Fatal(err)
	}
	if keys := s.keysIn(); len(keys) != 3+1+1+1 { // bodies, index, version, rollout
		t.Errorf("left %q", keys)
	}
}

// Whenever the beginning or the going back of a rollout dies, every host is offered what one
// of the two states offers it, and repeating it brings the other.
func TestRolloutKilled(t *testing.T) {
	for left, done := 0, false; !done; left++ {
		s := newShop(t)
		if _, err := s.offer(archive.Terms{}, s.planned(10, "former", waves)); err != nil {
			t.Fatal(err)
		}
		alive := s.Store
		s.Store = &dying{alive, left}
		_, err := s.offer(archive.Terms{}, s.rollout()...)
		done = err == nil
		if !done && !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		s.Store = alive
		if got := s.offered(); got != "10 10 10" && got != "19 10 10" {
			t.Fatalf("after %d commits hosts are offered %s", left, got)
		}
		s.expire()
		if _, err := s.offer(archive.Terms{}, s.rollout()...); err != nil {
			t.Fatal(err)
		}
		s.wantOffered("19 10 10")
		s.set(wave(1))
		r, err := s.Rollout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Store = &dying{alive, 0}
		if err := s.SetRollout(t.Context(), r, r.End(rollout.Stopped, "", time.Now())); !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		s.Store = alive
		s.wantOffered("19 20 10")
		s.set(end(rollout.Stopped))
		s.wantOffered("21 21 21")
	}
}

// An import that a rollout has ended under changes nothing: what it followed is no longer
// served.
func TestRolloutEndsDuringImport(t *testing.T) {
	s := begun(t)
	_, err := s.offer(archive.Terms{AtOnce: true, Record: func(archive.Version, archive.Version, archive.Rollout) ([]store.Op, error) {
		s.set(end(rollout.Aborted))
		return nil, nil
	}}, s.planned(30, "other", waves))
	if !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "or a rollout ended meanwhile: import again") {
		t.Error(err)
	}
	s.wantOffered("21 21 21")
}
