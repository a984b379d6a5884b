package transport_test

import (
	"strings"
	"testing"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

var published = []document.Published{
	{ID: kit.ID("service/outline")},
	{ID: kit.ID("service/ursula/outline")},
	{ID: kit.ID("vertex/outline")},
}

func registry(t testing.TB) transport.Registry {
	t.Helper()
	r, err := transport.NewRegistry(document.Forwarder{Publish: published})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRegistryRefuses(t *testing.T) {
	_, err := transport.NewRegistry(document.Forwarder{Publish: []document.Published{{ID: kit.ID("user/alice")}}})
	if want := "publish: spiffe://demo.flor/user/alice: a user cannot be dialled"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	_, err = transport.NewRegistry(document.Forwarder{Publish: append(published, published[0])})
	if want := `share the SNI "outline.demo.flor.rete"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// FuzzLookup checks that an SNI finds the identity it was made from, and that no other SNI finds
// one.
func FuzzLookup(f *testing.F) {
	r := registry(f)
	for _, sni := range []string{"", "outline.demo.flor.rete", "_vertex.outline.demo.flor.rete", "outline.ursula.demo.flor.rete", "OUTLINE.demo.flor.rete", "outline.demo.flor.rete."} {
		f.Add(sni)
	}
	f.Fuzz(func(t *testing.T, sni string) {
		id, ok := r.Lookup(sni)
		if !ok {
			for _, p := range published {
				if d, _ := spiffe.Dial(p.ID); spiffe.SNI(d) == sni {
					t.Fatalf("SNI %q of %s is not found", sni, p.ID)
				}
			}
			return
		}
		d, err := spiffe.Dial(id)
		if err != nil || spiffe.SNI(d) != sni {
			t.Fatalf("SNI %q finds %s, whose SNI is %q", sni, id, spiffe.SNI(d))
		}
	})
}
