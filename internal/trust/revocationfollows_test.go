package trust_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
)

// TestFollows checks that each revocation list follows all lists before it, regardless of the
// operators' changes and of the number of lists that a host missed. A provider that hides newer
// lists could serve a list that continues an earlier one. Such a list must not follow a list that
// revokes more, until the missing entries are added to it.
func TestFollows(t *testing.T) {
	key := kit.SigningKey("demo-1")
	sign := func(next *trust.Revocations) *trust.Revocations {
		s, err := revocation.Sign(next, key)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	// revoked returns the targets of this test that a list refuses.
	ids := []spiffe.ID{kit.ID("user/alice"), kit.ID("node/elm"), kit.ID("service/wiki")}
	keys, serials := []string{"SHA256:a", "SHA256:b"}, []string{"3f9a", "77"}
	revoked := func(list *trust.Revocations) (all []string) {
		for _, id := range ids {
			if list.CheckID(id) != nil {
				all = append(all, id.Short())
			}
		}
		for _, k := range keys {
			if list.CheckKey(k) != nil {
				all = append(all, k)
			}
		}
		for _, c := range list.Certificates {
			all = append(all, c.Serial)
		}
		return all
	}
	forked := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		now := time.Now()
		lists := []*trust.Revocations{sign(revocation.Next(nil, "demo", now, time.Hour))}
		for range 12 {
			now = now.Add(time.Duration(r.Int64N(int64(20 * 24 * time.Hour))))
			next := revocation.Next(lists[len(lists)-1], "demo", now, time.Hour)
			id, k, serial := ids[r.IntN(len(ids))], keys[r.IntN(len(keys))], serials[r.IntN(len(serials))]
			target := []revocation.Target{{ID: id}, {ID: id, Keys: []string{"SHA256:" + id.Name()}}, {Keys: []string{k}}, {Keys: []string{k}, Before: []spiffe.ID{id}}, {Certificates: []string{serial}}}[r.IntN(5)]
			switch r.IntN(4) { // errors mean that the target is not in the list
			case 0, 1:
				revocation.Revoke(next, target)
			case 2:
				_ = revocation.Reinstate(next, target)
			case 3:
				if revocation.Suspend(next, id) != nil || r.IntN(2) == 0 {
					_ = revocation.Unsuspend(next, id)
				}
			}
			list := sign(next)
			for _, before := range lists {
				if err := list.Follows(before); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			lists = append(lists, list)
		}
		newest, old := lists[len(lists)-1], lists[r.IntN(len(lists)-1)]
		fork := old
		for fork.Number <= newest.Number {
			fork = sign(revocation.Next(fork, "demo", now.Add(time.Hour), time.Hour))
		}
		has := fmt.Sprint(revoked(fork))
		err := fork.Follows(newest)
		for _, what := range revoked(newest) {
			if !strings.Contains(has, what) {
				forked++
				if err == nil {
					t.Fatalf("seed %d: a list without %s follows one with it", seed, what)
				}
			}
		}
		next := revocation.Continue(fork, []*trust.Revocations{newest}, 0, "demo", now.Add(time.Hour), time.Hour)
		if err := sign(next).Follows(newest); err != nil {
			t.Fatalf("seed %d: with what it lacked: %v", seed, err)
		}
	}
	a := sign(revocation.Next(nil, "demo", time.Now(), time.Hour))
	if a.Former != "" {
		t.Errorf("the first list continues %s", a.Former)
	}
	beside := func(change func(*trust.Revocations)) *trust.Revocations {
		next := revocation.Next(a, "demo", time.Now(), time.Hour)
		change(next)
		return sign(next)
	}
	b := beside(func(*trust.Revocations) {})
	c := beside(func(l *trust.Revocations) { revocation.Revoke(l, revocation.Target{ID: ids[0]}) })
	next := sign(revocation.Next(c, "demo", time.Now(), time.Hour))
	for _, list := range []*trust.Revocations{c, next} { // neither drops any entry
		if err := list.Follows(b); err == nil || !strings.Contains(err.Error(), "florctl revoke --renew") {
			t.Errorf("list %d beside list %d: %v", list.Number, b.Number, err)
		}
	}
	if err := sign(revocation.Next(next, "demo", time.Now(), time.Hour)).Follows(b); err != nil {
		t.Errorf("a host that missed a list: %v", err)
	}
	both := revocation.Continue(b, []*trust.Revocations{c}, 0, "demo", time.Now(), time.Hour)
	if list := sign(both); list.Follows(b) != nil || list.Follows(c) != nil || list.CheckID(ids[0]) == nil {
		t.Errorf("a list that continues both: %v, %v", list.Follows(b), list.Follows(c))
	}
	if forked < 100 {
		t.Errorf("%d things were hidden, want more for this to mean something", forked)
	}
}
