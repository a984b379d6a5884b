package trust_test

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
)

// TestVerified checks that the cache remembers only valid chains, each with the roots that verified
// it.
func TestVerified(t *testing.T) {
	authority, id, now := kit.NewCA(), kit.ID("node/fern"), time.Now()
	chain := func(id spiffe.ID) []*x509.Certificate {
		return []*x509.Certificate{authority.Issue(id, time.Hour).Leaf, authority.Issuing.Certificate}
	}
	// unsigned returns a copy of the chain in which a signature is invalid.
	unsigned := func(chain []*x509.Certificate) []*x509.Certificate {
		leaf := *chain[0]
		leaf.Signature = make([]byte, len(leaf.Signature))
		return []*x509.Certificate{&leaf, chain[1]}
	}
	memory := trust.NewVerified(2)
	roots := authority.Roots().Remembering(memory)
	good := chain(id)
	if _, err := roots.Verify(unsigned(good), now); err == nil {
		t.Fatal("a chain without a signature is accepted")
	}
	if _, err := roots.Verify(good, now); err != nil {
		t.Fatal(err)
	}
	if _, err := roots.Verify(unsigned(good), now); err != nil {
		t.Errorf("verified again: %v", err)
	}
	other := kit.NewCA().Roots()
	revoked, err := kit.Revocations(1, kit.SigningKey("demo-1"), revocation.Target{ID: id}).Open()
	if err != nil {
		t.Fatal(err)
	}
	var late *trust.ValidityError
	var gone *trust.RevokedError
	for name, c := range map[string]struct {
		roots *trust.Roots
		chain []*x509.Certificate
		at    time.Time
		want  any
	}{
		"by other roots":     {other.Remembering(memory), good, now, nil},
		"another issuer's":   {roots, []*x509.Certificate{good[0], kit.NewCA().Issuing.Certificate}, now, nil},
		"ended":              {roots, good, now.Add(2 * time.Hour), &late},
		"revoked meanwhile":  {roots.With(revoked), good, now, &gone},
		"for another usage":  {roots, good, now, "usage"},
		"without its issuer": {roots, good[:1], now, nil},
	} {
		usages := []x509.ExtKeyUsage{}
		if c.want == "usage" {
			usages = append(usages, x509.ExtKeyUsageCodeSigning)
			c.want = nil
		}
		if _, err := c.roots.Verify(c.chain, c.at, usages...); err == nil || c.want != nil && !errors.As(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 4 { // the cache holds at least two of them
		if _, err := roots.Verify(chain(id), now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := roots.Verify(unsigned(good), now); err == nil {
		t.Error("it remembers any number of chains")
	}
}
