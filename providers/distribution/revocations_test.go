package distribution_test

import (
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

func offer(t *testing.T, e *providertest.Env, number int64, targets ...revocation.Target) {
	t.Helper()
	_, _, err := (archive.Archive{Store: e.Store}).SetRevocations(t.Context(), kit.Revocations(number, signing, targets...),
		archive.ListTerms{Cluster: "demo", Signers: signers.Any(signing.ToPublicKey().String())})
	if err != nil {
		t.Fatal(err)
	}
}

// A list is pushed alone, or with the documents that are new, to whom it is newer for.
func TestRevocations(t *testing.T) {
	e := start(t)
	publish(t, e, 1000)
	offer(t, e, 3)
	c := e.Client(ursula)
	has, err := c.Artifact(t.Context())
	if err != nil || has.Revocations == nil || len(has.Documents) != 1 {
		t.Fatalf("got %+v, %v", has, err)
	}
	c.Tag = has.Tag()
	if a, err := c.Artifact(t.Context()); err != nil || !a.Unchanged() || a.NotModified || *a.Revocations != *has.Revocations {
		t.Errorf("got %+v, %v, want the list alone", a, err)
	}
	c.Revocations = 3
	if a, err := c.Artifact(t.Context()); err != nil || !a.NotModified {
		t.Errorf("got %+v, %v, want nothing", a, err)
	}
	answer := watch(t, c, has)
	waits(t, 1, answer)
	offer(t, e, 4)
	pushed := answered(t, answer)
	if list, err := pushed.Revocations.Open(); err != nil || list.Number != 4 || !pushed.Unchanged() || pushed.Revision == 0 {
		t.Errorf("got %+v, %v", pushed, err)
	}
	c.Revocations = 4
	answer = watch(t, c, hostapi.Artifact{Documents: has.Documents, Revision: pushed.Revision})
	waits(t, 1, answer)
	publish(t, e, 1001)
	if a := answered(t, answer); a.Revocations != nil || len(a.Documents) != 1 {
		t.Errorf("got %+v, want documents alone", a)
	}
	if a, err := (archive.Archive{Store: e.Store}).Revocations(t.Context()); err != nil || a.Number != 4 {
		t.Errorf("got %+v, %v", a, err)
	}
}

// A number that is none is malformed.
func TestRevocationsMalformed(t *testing.T) {
	e := start(t)
	publish(t, e, 1000)
	offer(t, e, 1)
	c := e.Client(ursula)
	c.Revocations = -1
	if a, err := c.Artifact(t.Context()); err == nil || hostapi.AsError(err).Code != hostapi.CodeMalformed.Name {
		t.Errorf("got %+v, %v", a, err)
	}
}
