package oidc

import (
	"maps"
	"testing"

	"golang.org/x/oauth2"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
)

// TestRenamed checks that a renamed service keeps its client, its secret and its sign-ins if the
// request names the former ID, and that a revocation of either ID ends the client.
func TestRenamed(t *testing.T) {
	f := newFixture(t)
	had := f.register(1)
	s := f.service(had)
	token, err := s.Exchange(s.ctx(), s.signIn("state", "verifier"), oauth2.VerifierOption("verifier"))
	if err != nil {
		t.Fatal(err)
	}
	docs := kit.ID("service/docs")
	version := f.inForce().version(had["clientId"], 1, 0)
	f.want = func(r *Request) { r.Service, r.Client = docs, outline }
	f.grant(callback)
	if f.inForce().version(had["clientId"], 1, 0) != version {
		t.Error("the client at an external issuer is registered anew")
	}
	if has := f.register(1); !maps.Equal(has, had) {
		t.Errorf("the renamed service has client %s, want %s with the same secret", has["clientId"], had["clientId"])
	}
	if token, err = s.refresh(token.RefreshToken); err != nil {
		t.Fatal(err)
	}
	for i, id := range []spiffe.ID{docs, outline} {
		list, err := kit.Revocations(int64(i+1), kit.SigningKey("demo-1"), revocation.Target{ID: id}).Open()
		if err != nil {
			t.Fatal(err)
		}
		f.revoked.Store(list)
		_, err = s.refresh(token.RefreshToken)
		refused(t, "the client of "+id.Short(), err, "invalid_client")
	}

	f.stop()
	f.want = func(r *Request) { r.Service, r.Client = docs, ursula }
	f.grant(callback)
	if _, err := compile(f.policy); err == nil {
		t.Error("a client has the ID of a node")
	}
}
