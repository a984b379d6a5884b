package acl_test

import (
	"crypto/x509"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit"
)

func TestList(t *testing.T) {
	outline, wiki, names := kit.ID("service/outline"), kit.ID("service/wiki"), kit.ID("service/names")
	alice, bob := kit.ID("user/alice"), kit.ID("user/bob")
	one, other := &x509.Certificate{Raw: []byte("one")}, &x509.Certificate{Raw: []byte("other")}
	list := acl.Compile([]document.Published{
		{ID: outline, Allow: []document.Allow{{ID: alice}, {ID: bob, Fingerprint: acl.Fingerprint(one)}}},
		{ID: wiki},
		{ID: names, Port: "dns", Allow: []document.Allow{{ID: alice}, {ID: bob}}},
		{ID: names, Port: "metrics", Allow: []document.Allow{{ID: alice}}},
	})
	for _, x := range []struct {
		list   acl.List
		target spiffe.ID
		port   string
		caller spiffe.ID
		leaf   *x509.Certificate
		want   bool
	}{
		{list, outline, "", alice, other, true},
		{list, outline, "", bob, one, true},
		{list, outline, "", bob, other, false},
		{list, wiki, "", alice, one, false},
		{list, alice, "", outline, one, false},
		{acl.List{}, outline, "", alice, one, false},
		{list, names, "dns", bob, one, true},
		{list, names, "metrics", alice, one, true},
		{list, names, "metrics", bob, one, false},
		{list, names, "", bob, one, true}, // of some port
		{list, outline, "dns", alice, one, false},
	} {
		if got := x.list.Allows(x.target, x.port, x.caller, x.leaf, time.Now()); got != x.want {
			t.Errorf("%s to %s with %q: %v", x.caller, x.target, x.leaf.Raw, got)
		}
	}
}

func TestListEnds(t *testing.T) {
	wiki, alice, bob := kit.ID("service/wiki"), kit.ID("user/alice"), kit.ID("user/bob")
	leaf, at := &x509.Certificate{}, time.Unix(2000000000, 0)
	list := acl.Compile([]document.Published{{ID: wiki, Allow: []document.Allow{
		{ID: alice, Until: unixtime.Of(at)},
		{ID: bob, Until: unixtime.Of(at.Add(time.Hour))},
	}}})
	for _, x := range []struct {
		caller spiffe.ID
		now    time.Time
		want   bool
	}{
		{alice, at.Add(-time.Second), true},
		{alice, at, false},
		{bob, at, true},
		{bob, at.Add(2 * time.Hour), false},
	} {
		if got := list.Allows(wiki, "", x.caller, leaf, x.now); got != x.want {
			t.Errorf("%s at %s: %v", x.caller, x.now, got)
		}
	}
	for now, want := range map[time.Time]time.Time{
		at.Add(-time.Hour): at, at: at.Add(time.Hour), at.Add(time.Hour): {},
	} {
		if got := list.NextEnd(now); !got.Equal(want) {
			t.Errorf("after %s the next ends at %s, want %s", now, got, want)
		}
	}
}

func TestLostLogins(t *testing.T) {
	shell, other, alice, bob := kit.ID("service/shell"), kit.ID("service/other"), kit.ID("user/alice"), kit.ID("user/bob")
	at := time.Unix(2000000000, 0)
	list := func(allow ...document.Allow) acl.List {
		return acl.Compile([]document.Published{{ID: shell, Allow: allow}, {ID: other, Allow: []document.Allow{{ID: alice}}}})
	}
	as := func(accounts ...string) (all []document.Login) {
		for _, a := range accounts {
			all = append(all, document.Login{Account: a})
		}
		return all
	}
	before := list(document.Allow{ID: alice, Logins: as("deploy", "root")}, document.Allow{ID: bob, Logins: as("deploy")})
	for name, x := range map[string]struct {
		now  acl.List
		lost []spiffe.ID
	}{
		"the same":          {before, nil},
		"one of two":        {list(document.Allow{ID: alice, Logins: as("root")}, document.Allow{ID: bob, Logins: as("deploy")}), []spiffe.ID{alice}},
		"another":           {list(document.Allow{ID: alice, Logins: as("root", "x")}, document.Allow{ID: bob, Logins: as("deploy")}), []spiffe.ID{alice}},
		"gained":            {list(document.Allow{ID: alice, Logins: as("deploy", "root", "x")}, document.Allow{ID: bob, Logins: as("deploy")}), nil},
		"all":               {list(document.Allow{ID: alice}, document.Allow{ID: bob}), []spiffe.ID{alice, bob}},
		"no longer allowed": {list(document.Allow{ID: alice, Logins: as("deploy", "root")}), []spiffe.ID{bob}},
		"ended": {list(document.Allow{ID: alice, Logins: as("deploy", "root")},
			document.Allow{ID: bob, Logins: []document.Login{{Account: "deploy", Until: unixtime.Of(at)}}}), []spiffe.ID{bob}},
	} {
		lost := before.Logins(at).Lost(x.now.Logins(at))
		if lost == nil {
			lost = func(spiffe.ID, spiffe.ID) bool { return false }
		}
		for _, caller := range []spiffe.ID{alice, bob} {
			if got := lost(shell, caller); got != slices.Contains(x.lost, caller) || lost(other, caller) {
				t.Errorf("%s: %s has lost a login: %v", name, caller, got)
			}
		}
	}
	ending := list(document.Allow{ID: bob, Logins: []document.Login{{Account: "deploy", Until: unixtime.Of(at)}}})
	if next := ending.NextEnd(at.Add(-time.Hour)); !next.Equal(at) {
		t.Errorf("the next ends at %s, want %s", next, at)
	}
}

func TestEnforcerAdmitsNothingByDefault(t *testing.T) {
	var e acl.Enforcer[int]
	if _, ok := e.Admit(1, func() {}); ok {
		t.Error("the zero enforcer admits")
	}
}

func TestEnforcerClosesWhatANewRuleDenies(t *testing.T) {
	var e acl.Enforcer[int]
	e.SetRule(func(int) bool { return true })
	var closed [4]int
	for i := range closed {
		release, ok := e.Admit(i, func() { closed[i]++ })
		if !ok {
			t.Fatal("not admitted")
		}
		if i == 3 {
			release()
		}
	}
	odd := func(i int) bool { return i%2 == 1 && i != 3 }
	e.SetRule(odd)
	e.SetRule(odd)
	if want := [4]int{1, 0, 1, 0}; closed != want {
		t.Errorf("closed %v, want %v", closed, want)
	}
}

func TestEnforcerCloses(t *testing.T) {
	var e acl.Enforcer[int]
	e.SetRule(func(int) bool { return true })
	var closed [2]int
	for i := range closed {
		e.Admit(i, func() { closed[i]++ })
	}
	one := func(i int) bool { return i == 1 }
	e.Close(one)
	e.Close(one)
	if closed != [2]int{0, 1} {
		t.Errorf("closed %v", closed)
	}
	if _, ok := e.Admit(1, func() {}); !ok {
		t.Error("not admitted again")
	}
}

// TestEnforcerLaw admits connections and changes rules at the same time: connections open under the
// last rule must be allowed by it.
func TestEnforcerLaw(t *testing.T) {
	var e acl.Enforcer[int]
	var open [8]atomic.Int64
	var wg sync.WaitGroup
	for i := range open {
		wg.Go(func() {
			for range 500 {
				open[i].Add(1)
				if _, ok := e.Admit(i, func() { open[i].Add(-1) }); !ok {
					open[i].Add(-1)
				}
			}
		})
	}
	rule := func(n int) func(int) bool { return func(i int) bool { return i < n } }
	for n := range 400 {
		e.SetRule(rule(n % 9))
	}
	e.SetRule(rule(3))
	wg.Wait()
	for i := range open {
		if n := open[i].Load(); i >= 3 && n != 0 {
			t.Errorf("%d entries of %d, which the rule denies, are open", n, i)
		}
	}
}
