package spiffe_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/florete/florete/internal/spiffe"
)

type vectors struct {
	IDs []struct {
		ID, TrustDomain, Kind, Node, Name, Rete, SNI string
	}
	InvalidIDs []string
	Resolve    []struct{ Host, ID string }
	Unresolved []string
}

func nameVectors(t testing.TB) (v vectors) {
	t.Helper()
	b, err := os.ReadFile("../../tests/golden/names/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestIDVectors(t *testing.T) {
	for _, v := range nameVectors(t).IDs {
		id, err := spiffe.ParseID(v.ID)
		if err != nil {
			t.Error(err)
			continue
		}
		if id.String() != v.ID || id.TrustDomain() != v.TrustDomain || string(id.Kind()) != v.Kind || id.Node() != v.Node || id.Name() != v.Name {
			t.Errorf("%s parsed as %q %q %q %q", v.ID, id.TrustDomain(), id.Kind(), id.Node(), id.Name())
		}
		made, err := spiffe.NewID(v.TrustDomain, spiffe.Kind(v.Kind), v.Node, v.Name)
		if err != nil || made != id {
			t.Errorf("%s made as %v, %v", v.ID, made, err)
		}
		if got := id.SPIFFE().String(); got != v.ID {
			t.Errorf("%s is %s to go-spiffe", v.ID, got)
		}
		d, err := spiffe.Dial(id)
		if v.Rete == "" {
			if err == nil {
				t.Errorf("%s can be dialled", v.ID)
			}
			continue
		}
		if err != nil {
			t.Error(err)
		} else if spiffe.Render(d) != v.Rete || spiffe.SNI(d) != v.SNI {
			t.Errorf("%s is named %q, SNI %q", v.ID, spiffe.Render(d), spiffe.SNI(d))
		}
	}
}

func TestInvalidIDs(t *testing.T) {
	for _, s := range nameVectors(t).InvalidIDs {
		if id, err := spiffe.ParseID(s); err == nil {
			t.Errorf("%q parsed as %#v", s, id)
		}
	}
}

func TestResolveVectors(t *testing.T) {
	v := nameVectors(t)
	for _, r := range v.Resolve {
		d, err := spiffe.Resolve(r.Host, "demo.flor")
		if err != nil || d.ID().String() != r.ID {
			t.Errorf("%q resolved to %v, %v", r.Host, d.ID(), err)
		}
	}
	for _, host := range v.Unresolved {
		if d, err := spiffe.Resolve(host, "demo.flor"); err == nil {
			t.Errorf("%q resolved to %v", host, d.ID())
		}
	}
}

func FuzzID(f *testing.F) {
	v := nameVectors(f)
	for _, i := range v.IDs {
		f.Add(i.ID)
	}
	for _, s := range v.InvalidIDs {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := spiffe.ParseID(s)
		if err != nil {
			return
		}
		if id.String() != s {
			t.Fatalf("%q prints as %q", s, id)
		}
		d, err := spiffe.Dial(id)
		if err != nil || id.Kind() != spiffe.KindService {
			return
		}
		back, err := spiffe.Resolve(spiffe.Render(d), id.TrustDomain())
		if err != nil || back != d {
			t.Fatalf("%q renders as %q, which resolves to %v, %v", s, spiffe.Render(d), back.ID(), err)
		}
	})
}

func FuzzResolve(f *testing.F) {
	v := nameVectors(f)
	for _, r := range v.Resolve {
		f.Add(r.Host, "demo.flor")
	}
	for _, h := range v.Unresolved {
		f.Add(h, "demo.flor")
	}
	f.Fuzz(func(t *testing.T, host, td string) {
		d, err := spiffe.Resolve(host, td)
		if err != nil {
			return
		}
		again, err := spiffe.Resolve(spiffe.Render(d), td)
		if err != nil || again != d {
			t.Fatalf("%q in %q: %v, then %v, %v", host, td, d.ID(), again.ID(), err)
		}
	})
}
