package oidc

import (
	"testing"

	"golang.org/x/oauth2"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
)

// TestRevoked checks that the client of a revoked host or service ends, together with all sign-ins
// that used it. A client that another host shares does not end.
func TestRevoked(t *testing.T) {
	f := newFixture(t)
	s := f.service(f.register(1))
	token, err := s.Exchange(s.ctx(), s.signIn("state", "verifier"), oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	number := int64(0)
	revoke := func(ids ...spiffe.ID) {
		t.Helper()
		number++
		var targets []revocation.Target
		for _, id := range ids {
			targets = append(targets, revocation.Target{ID: id})
		}
		list, err := kit.Revocations(number, kit.SigningKey("demo-1"), targets...).Open()
		if err != nil {
			t.Fatal(err)
		}
		f.revoked.Store(list)
	}
	goesOn := func() error {
		t.Helper()
		next, err := s.refresh(token.RefreshToken)
		if err == nil {
			token = next
		}
		return err
	}
	if err := goesOn(); err != nil {
		t.Fatal(err)
	}
	revoke(kit.ID("node/laptop"))
	if err := goesOn(); err != nil {
		t.Error(err)
	}
	for _, id := range []spiffe.ID{ursula, outline} {
		revoke(id)
		refused(t, "the client of "+id.Short(), goesOn(), "invalid_client")
		if _, err := f.p.cfg.Store.Get(t.Context(), key("outline.demo.flor.rete")); err != nil {
			t.Error(err)
		}
		revoke()
		if err := goesOn(); err != nil {
			t.Errorf("after %s was reinstated: %v", id.Short(), err)
		}
	}
	f.share(kit.ID("node/raishan"))
	revoke(ursula)
	if err := goesOn(); err != nil {
		t.Errorf("raishan has the client too: %v", err)
	}
}
