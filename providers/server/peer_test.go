package server

import (
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/ca"
)

// TestPeerIsVerifiedOnce: a chain is looked at again when it expires or other roots are in
// force, and not before: until then another chain gives the same result.
func TestPeerIsVerifiedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, err := ca.NewRoot("demo.flor", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		roots := func() *florete.Roots {
			r, err := florete.NewRoots("demo.flor", []string{string(ca.EncodeCertificates(root.Certificate))})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		chain := func(by *ca.Authority, name string) []*x509.Certificate {
			id, err := florete.NewID("demo.flor", florete.KindNode, "", name)
			if err != nil {
				t.Fatal(err)
			}
			key, err := ca.NewKey()
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := by.Issue(id, key.Public(), time.Now().Add(time.Hour), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return []*x509.Certificate{leaf}
		}
		stranger, err := ca.NewRoot("demo.flor", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		good, other, forged := chain(root, "ursula"), chain(root, "raishan"), chain(stranger, "ursula")
		compiledPolicy := roots()
		var p peer
		want := func(chain []*x509.Certificate, roots *florete.Roots, name, code string) {
			t.Helper()
			id, err := p.verify(chain, roots)
			if code == "" && (err != nil || id.Name() != name) || code != "" && (err == nil || api.AsError(err).Code != code) {
				t.Errorf("got %s, %v; want %s %s", id, err, name, code)
			}
		}
		want(good, compiledPolicy, "ursula", "")
		want(other, compiledPolicy, "ursula", "")
		time.Sleep(time.Hour + time.Second)
		want(good, compiledPolicy, "", api.CodeClock)
		want(chain(root, "raishan"), compiledPolicy, "raishan", "")
		want(good, roots(), "", api.CodeClock)

		p = peer{}
		want(forged, compiledPolicy, "", api.CodeUntrusted)
		want(good, compiledPolicy, "", api.CodeUntrusted)
		want(chain(root, "ursula"), roots(), "ursula", "")
	})
}
