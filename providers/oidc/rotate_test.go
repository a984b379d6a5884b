package oidc

import (
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// signs signs in at a service with the delivered client.
func (f *fixture) signs(delivered map[string]string) error {
	s := f.service(delivered)
	_, err := s.Exchange(s.ctx(), s.signIn("state", "verifier"), oauth2.VerifierOption("verifier"))
	return err
}

// TestRotationOnRequest checks that sign-ins work with the secret of the last rotation, and for a
// while with the secret before it, but with no older one, even after a restart of the provider.
func TestRotationOnRequest(t *testing.T) {
	f := newFixture(t)
	first := f.register(1)
	if err := f.signs(first); err != nil {
		t.Fatal(err)
	}
	call := f.call(1)
	call.Rotation = server.Rotation{Number: 1, Since: time.Now()}
	d, err := f.p.Answer(t.Context(), f.inForce(), call)
	if err != nil {
		t.Fatal(err)
	}
	second := d.Answer.Values
	refused(t, "before it is committed, the new secret", f.signs(second), "invalid_client")
	if _, err := f.db.Commit(t.Context(), store.Txn{If: d.If, Then: d.Then}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.signs(second); err != nil {
			t.Errorf("the new secret: %v", err)
		}
		if err := f.signs(first); err != nil {
			t.Errorf("the old secret within the overlap: %v", err)
		}
		f.restart()
	}
	call.Rotation = server.Rotation{Number: 2, Since: time.Now().Add(-overlap)}
	if d, err = f.p.Answer(t.Context(), f.inForce(), call); err != nil {
		t.Fatal(err)
	}
	if _, err := f.db.Commit(t.Context(), store.Txn{If: d.If, Then: d.Then}); err != nil {
		t.Fatal(err)
	}
	if err := f.signs(d.Answer.Values); err != nil {
		t.Errorf("the newest secret: %v", err)
	}
	refused(t, "the old secret after the overlap", f.signs(second), "invalid_client")
	refused(t, "the one before that", f.signs(first), "invalid_client")
	if r, err := f.p.Rotation(t.Context(), f.inForce(), f.call(1)); err != nil || r.Number != 2 || r.Since.IsZero() {
		t.Errorf("rotation %+v is on record, %v", r, err)
	}
}

// TestGenerationEndsBoth checks that raising the generation, because others may know the secret,
// ends all former secrets at once, even during an overlap.
func TestGenerationEndsBoth(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.register(1)
	call := f.call(1)
	call.Rotation = server.Rotation{Number: 1, Since: time.Now()}
	d := must(f.p.Answer(t.Context(), f.inForce(), call))
	must(f.db.Commit(t.Context(), store.Txn{If: d.If, Then: d.Then}))
	second := d.Answer.Values
	call = f.call(2)
	call.Rotation = server.Rotation{Number: 1, Since: call.Now}
	d = must(f.p.Answer(t.Context(), f.inForce(), call))
	must(f.db.Commit(t.Context(), store.Txn{If: d.If, Then: d.Then}))
	if err := f.signs(d.Answer.Values); err != nil {
		t.Errorf("the new generation: %v", err)
	}
	refused(t, "the secret of before", f.signs(second), "invalid_client")
	refused(t, "the first one", f.signs(first), "invalid_client")
}

// TestSharedClient checks that a host cannot rotate a client that it shares with other hosts.
func TestSharedClient(t *testing.T) {
	f := newFixture(t)
	f.register(1)
	f.share(kit.ID("node/raishan"))
	call := f.call(1)
	if _, err := f.p.Rotation(t.Context(), f.inForce(), call); err != nil {
		t.Errorf("a host that fetches it: %v", err)
	}
	call.Request.Rotation = 1
	_, err := f.p.Rotation(t.Context(), f.inForce(), call)
	providertest.WantError(t, err, hostapi.CodeRotation)
}
