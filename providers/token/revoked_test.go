package token

import (
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestRevoked checks that a revoked identity gets no token, whether it uses its SVID, an older
// JWT-SVID, also one from a revoked node, or a request of its host. Other identities still get
// tokens. A suspended identity gets a transient error, because it gets tokens again when the
// suspension ends.
func TestRevoked(t *testing.T) {
	t.Parallel()
	e := start(t, acme("https://login.example.org"))
	ring := e.svidKeys()
	if err := os.WriteFile(e.keys, ring.JWKS(), 0o600); err != nil {
		t.Fatal(err)
	}
	number := int64(0)
	enforce := func(s trust.SignedRevocations) {
		t.Helper()
		kit.WriteRevocations(e.Revocations(), s)
		e.until("the list", func() bool { return e.Policies.Revoked().InForce() == number })
	}
	revoke := func(ids ...spiffe.ID) {
		t.Helper()
		number++
		var targets []revocation.Target
		for _, id := range ids {
			targets = append(targets, revocation.Target{ID: id})
		}
		enforce(kit.Revocations(number, kit.SigningKey("demo-1"), targets...))
	}
	by := func(id spiffe.ID, form url.Values, want int) {
		t.Helper()
		status, answer := e.exchange(id, "acme", form)
		if status != want || want != http.StatusOK && answer["access_token"] != nil {
			t.Errorf("%s: %d %v, want %d", id, status, answer, want)
		}
	}
	requested := func() error {
		_, err := e.Client(kit.ID("node/ursula")).Do(t.Context(), hostapi.Path(Name), hostapi.Request{Need: "token-wiki-events", Serial: providertest.Serial, Generation: 1, Body: kit.JSON(wikiRequest)})
		return err
	}
	revoke(wiki)
	providertest.WantError(t, requested(), hostapi.CodeRevoked)
	by(wiki, url.Values{}, http.StatusForbidden)
	by(alice, e.jwtSVID(ring, acmeIssuer), http.StatusForbidden)
	by(alice, url.Values{}, http.StatusOK)
	rows := 0
	for _, r := range e.Audit() {
		if r.Code == hostapi.CodeRevoked.Name && r.Outcome == server.Outcome(hostapi.Denied) {
			rows++
		}
	}
	if rows != 3 {
		t.Errorf("%d rows of refusals, want 3", rows)
	}
	revoke(kit.ID("node/elm")) // the node of the JWT-SVID
	by(alice, e.jwtSVID(ring, acmeIssuer), http.StatusForbidden)
	by(wiki, url.Values{}, http.StatusOK)
	revoke()
	by(alice, e.jwtSVID(ring, acmeIssuer), http.StatusOK)

	list := revocation.Next(nil, "demo", time.Now(), revocation.Lifetime)
	number++
	list.Number = number
	for _, id := range []spiffe.ID{wiki, kit.ID("node/elm")} {
		if err := revocation.Suspend(list, id); err != nil {
			t.Fatal(err)
		}
	}
	signed, err := revocation.Sign(list, kit.SigningKey("demo-1"))
	if err != nil {
		t.Fatal(err)
	}
	enforce(signed)
	providertest.WantError(t, requested(), hostapi.CodeRevokedTransient)
	by(wiki, url.Values{}, http.StatusServiceUnavailable)
	by(alice, e.jwtSVID(ring, acmeIssuer), http.StatusServiceUnavailable)
	by(alice, url.Values{}, http.StatusOK)
}
