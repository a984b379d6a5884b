package server

import (
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
)

// TestPeerIsVerifiedOnce checks that the result of verifying a chain is kept until the chain
// expires or other roots come into force.
func TestPeerIsVerifiedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trusted, stranger := kit.NewCA(), kit.NewCA()
		chain := func(by *kit.CA, name string) []*x509.Certificate {
			return []*x509.Certificate{by.Issue(kit.ID("node/"+name), time.Hour).Leaf, by.Issuing.Certificate}
		}
		good, other, forged := chain(trusted, "ursula"), chain(trusted, "raishan"), chain(stranger, "ursula")
		compiledPolicy := trusted.Roots()
		var p peer
		want := func(chain []*x509.Certificate, roots *trust.Roots, name, code string) {
			t.Helper()
			id, err := p.verify(chain, roots)
			if code == "" && (err != nil || id.Name() != name) || code != "" && (err == nil || hostapi.AsError(err).Code != code) {
				t.Errorf("got %s, %v; want %s %s", id, err, name, code)
			}
		}
		want(good, compiledPolicy, "ursula", "")
		want(other, compiledPolicy, "ursula", "")
		time.Sleep(time.Hour + time.Second)
		want(good, compiledPolicy, "", hostapi.CodeClock.Name)
		want(chain(trusted, "raishan"), compiledPolicy, "raishan", "")
		want(good, trusted.Roots(), "", hostapi.CodeClock.Name)

		p = peer{}
		want(forged, compiledPolicy, "", hostapi.CodeUntrusted.Name)
		want(good, compiledPolicy, "", hostapi.CodeUntrusted.Name)
		want(chain(trusted, "ursula"), trusted.Roots(), "ursula", "")
	})
}
