package documents

import (
	"os"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
)

// wantList checks which revocation list is in force, now and for the next activation.
func (o *origins) wantList(number int64) {
	o.t.Helper()
	for _, when := range []string{"now", "after a restart"} {
		if got := o.store.Set().Roots.Revocations().InForce(); got != number {
			o.t.Fatalf("%s: list %d is in force, want %d", when, got, number)
		}
		o.open()
	}
}

// TestRevocations checks that a list is replaced only by one with a higher number, even if
// documents are reverted.
func TestRevocations(t *testing.T) {
	o := newOrigins(t)
	list := func(number int64) *trust.SignedRevocations {
		s := kit.Revocations(number, o.Signing, revocation.Target{ID: kit.ID("user/eve")})
		return &s
	}
	accept := func(s *trust.SignedRevocations, docs ...hostapi.SignedDocument) *hostapi.Error {
		return o.store.Accept(o.t.Context(), hostapi.Artifact{Documents: docs, Revocations: s})
	}
	o.deploy(kit.Document(5, o.version("a")))
	o.open()
	o.wantList(0)
	second := list(2)
	o.wantAccepted(accept(second))
	o.wantList(2)
	o.want(5, "a")
	o.wantAccepted(accept(list(1))) // of a provider that was restored
	o.wantAccepted(accept(list(2))) // another with the same number
	o.wantList(2)
	if b := kit.ReadFile(o.layout.Revocations()); signed(t, b) != *second {
		t.Errorf("got %s", b)
	}

	t.Log("one that continues an older list, and drops an entry that nobody reinstated")
	dropping := kit.Revocations(9, o.Signing, revocation.Target{ID: kit.ID("user/bob")})
	o.wantRefused(accept(&dropping), hostapi.Denied, CodeTampered.Name, "drops user/eve, which list 2 revokes")
	o.wantList(2)

	t.Log("one that continues another list than that in force, and drops nothing")
	eve := revocation.Target{ID: kit.ID("user/eve")}
	another := kit.Continued(kit.Revocations(2, o.Signing, eve, revocation.Target{ID: kit.ID("user/bob")}), o.Signing)
	o.wantRefused(accept(&another), hostapi.Denied, CodeTampered.Name, "revocation list 3 does not continue list 2 of ")
	o.wantList(2)

	t.Log("documents and a list at once, of which either may be refused")
	o.wantAccepted(accept(list(3), kit.Signed(6, o.version("b"), o.Signing)))
	o.wantList(3)
	o.want(6, "b")
	o.wantRefused(accept(list(4), kit.Signed(1, o.version("b"), o.Signing)), hostapi.Transient, CodeOlder.Name, "serial 1")
	o.wantList(4)
	other := kit.SigningKey("demo-2")
	s := kit.Revocations(9, other)
	o.wantRefused(accept(&s, kit.Signed(7, o.version("c"), o.Signing)), hostapi.Denied, CodeTampered.Name, "revocation list 9: signature by")
	o.wantList(4)
	o.want(7, "c")
	forged := list(9)
	forged.List = kit.Revocations(10, other).List
	o.wantRefused(accept(forged), hostapi.Denied, CodeTampered.Name, "does not verify")
	o.wantList(4)

	t.Log("an older manifest, of the closure, and a change that goes back")
	o.deploy(kit.Document(4, o.version("d")))
	o.open()
	o.want(4, "d")
	o.wantList(4)
	o.begin(kit.Signed(8, o.version("e"), o.Signing))
	o.wantAccepted(accept(list(5)))
	o.wantList(5)
	if _, err := Undo(o.layout, nil); err != nil {
		t.Fatal(err)
	}
	o.open()
	o.want(4, "d")
	o.wantList(5)

	t.Log("what cannot be read is replaced by what is fetched")
	if err := os.WriteFile(o.layout.Revocations(), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if note := o.open(); note == "unchanged" {
		t.Error("no note")
	}
	o.wantAccepted(accept(list(5)))
	o.wantList(5)
}

func signed(t *testing.T, b []byte) trust.SignedRevocations {
	t.Helper()
	s, _, err := revocation.Supply(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
