package token

import (
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/providertest"
	"github.com/florete/florete/providers/revocation"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
)

// TestRevoked checks that a revoked identity gets no token, whether it uses its SVID, an older
// JWT-SVID, also one from a revoked node, or a request of its host. Other identities still get
// tokens.
func TestRevoked(t *testing.T) {
	t.Parallel()
	e := start(t, acme("https://login.example.org"))
	ring := e.svidKeys()
	if err := os.WriteFile(e.keys, ring.JWKS(), 0o600); err != nil {
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
		kit.WriteRevocations(e.Revocations(), kit.Revocations(number, kit.SigningKey("demo-1"), targets...))
		e.until("the list", func() bool { return e.Policies.Revoked().InForce() == number })
	}
	by := func(id spiffe.ID, form url.Values, want int) {
		t.Helper()
		status, answer := e.exchange(id, "acme", form)
		if status != want || want != http.StatusOK && answer["access_token"] != nil {
			t.Errorf("%s: %d %v, want %d", id, status, answer, want)
		}
	}
	revoke(wiki)
	_, err := e.Client(kit.ID("node/ursula")).Do(t.Context(), hostapi.Path(Name), hostapi.Request{Need: "token-wiki-events", Serial: providertest.Serial, Generation: 1, Body: kit.JSON(wikiRequest)})
	providertest.WantError(t, err, hostapi.CodeRevoked)
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
}
