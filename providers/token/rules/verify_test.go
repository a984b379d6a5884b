package rules

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store/sqlite"
)

const issuer = "http://tokens.demo.flor.rete/v1/tenants/acme"

func ring(t *testing.T, algorithm jose.SignatureAlgorithm) sealedstore.SigningRing {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := sealedstore.SigningKeys{Store: db, Seal: key, At: "k", Algorithm: algorithm}.Due(t.Context(), time.Now(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sign(t *testing.T, r sealedstore.SigningRing, typ jose.ContentType, c Claims) string {
	t.Helper()
	s, err := r.Signer(time.Now()).Signer(typ)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(s).Claims(c).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func claims(now time.Time) Claims {
	o, _ := ParseObject("stream:acme/payments/*")
	return Claims{jwt.Claims{Issuer: issuer, Subject: "s", Audience: jwt.Audience{issuer}, IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Minute))},
		[]Permission{{Action: "stream.publish", Object: o}}}
}

func TestVerify(t *testing.T) {
	now := time.Now()
	ours, theirs := ring(t, jose.EdDSA), ring(t, jose.EdDSA)
	read := 0
	v := &Verifier{Issuer: issuer, Keys: func() ([]byte, error) { read++; return ours.JWKS(), nil }}
	for range 3 {
		token, err := v.Verify(sign(t, ours, TokenType, claims(now)), now)
		if err != nil || !token.May("stream.publish", "stream:acme/payments/a") || token.May("stream.publish", "stream:acme/other/a") || token.May("stream.delete", "stream:acme/payments/a") {
			t.Fatalf("%+v, %v", token, err)
		}
	}
	if read != 1 {
		t.Errorf("the keys were read %d times", read)
	}
	change := func(f func(*Claims)) string {
		c := claims(now)
		f(&c)
		return sign(t, ours, TokenType, c)
	}
	for want, token := range map[string]string{
		"does not have":   sign(t, theirs, TokenType, claims(now)),
		"type":            sign(t, ours, "JWT", claims(now)),
		"algorithm":       sign(t, ring(t, jose.ES256), TokenType, claims(now)),
		"(iss)":           change(func(c *Claims) { c.Issuer = issuer + "x" }),
		"(aud)":           change(func(c *Claims) { c.Audience = jwt.Audience{"x"} }),
		"expired":         change(func(c *Claims) { c.Expiry = jwt.NewNumericDate(now.Add(-time.Minute)) }),
		"claims exp":      change(func(c *Claims) { c.Expiry = nil }),
		"exp and sub":     change(func(c *Claims) { c.Subject = "" }),
		"want at most":    strings.Repeat("a", maxToken+1),
		"token: go-jose/": "a.b",
	} {
		if got, err := v.Verify(token, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v, want %q", got, err, want)
		}
	}
}

// TestRotation checks that the verifier reads the keys again when a token was signed with an
// unknown key, but at most once a second. If the keys cannot be read, the earlier keys stay in use.
func TestRotation(t *testing.T) {
	now := time.Now()
	first, second := ring(t, jose.EdDSA), ring(t, jose.EdDSA)
	served, failure, read := first, error(nil), 0
	v := &Verifier{Issuer: issuer, Keys: func() ([]byte, error) { read++; return served.JWKS(), failure }}
	old, other := sign(t, first, TokenType, claims(now)), sign(t, second, TokenType, claims(now))
	if _, err := v.Verify(old, now); err != nil {
		t.Fatal(err)
	}
	served = append(served, second...)
	for range 3 {
		if _, err := v.Verify(other, now); err == nil {
			t.Error("accepted before it was read")
		}
	}
	failure = errors.New("the disk is gone")
	if _, err := v.Verify(other, now.Add(time.Second)); !errors.Is(err, failure) {
		t.Error(err)
	}
	failure = nil
	for _, token := range []string{other, old} {
		if _, err := v.Verify(token, now.Add(2*time.Second)); err != nil {
			t.Error(err)
		}
	}
	if read != 3 {
		t.Errorf("the keys were read %d times", read)
	}
}
