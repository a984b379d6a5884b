package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TokenType is the type in the header of a tenant's token (RFC 9068). It distinguishes such a token
// from all other tokens of the same signer.
const TokenType = "at+jwt"

// Claims contains the claims of a tenant's token.
type Claims struct {
	jwt.Claims

	// Permissions lists everything that the bearer of the token is permitted to do.
	Permissions []Permission `json:"permissions"`
}

// Token is a token whose signature and claims were verified.
type Token struct {
	Subject     string // a SPIFFE ID, or subject:ISSUER/SUB
	ID          string
	Expiry      time.Time
	Permissions []Permission
}

// May reports whether the token permits an action on a whole object, such as
// "namespace:acme/payments". If the object is not valid, it returns false.
func (t Token) May(action, of string) bool {
	o, err := ParseObject(of)
	if err != nil {
		return false
	}
	for _, p := range t.Permissions {
		if p.Action == action && p.Object.Covers(o) {
			return true
		}
	}
	return false
}

// maxToken is the largest length of a token that is accepted, in bytes.
const maxToken = 64 << 10

// reread is the shortest time between two reads of the keys that tokens with an unknown key cause.
const reread = time.Second

// skew is the tolerated difference between clocks.
const skew = 30 * time.Second

// Verifier verifies the tokens of one tenant. Several goroutines may use it at the same time. Do
// not copy it after its first use.
type Verifier struct {
	Issuer string // issuer of the tenant, as in its tokens

	// Keys returns the tenant's JWK Set. It is called for the first token. It is called again, at
	// most once a second, for tokens that are signed with an unknown key.
	Keys func() ([]byte, error)

	mu   sync.Mutex
	read time.Time
	err  error
	set  jose.JSONWebKeySet
}

// KeyFile returns a function for the field Verifier.Keys, which reads the keys from a file. When
// the keys change, replace the file atomically.
func KeyFile(path string) func() ([]byte, error) {
	return func() ([]byte, error) { return os.ReadFile(path) }
}

// Verify checks the type, signature, issuer and lifetime of a token at the time now, and returns
// its content. If the token is not valid, the error says why.
func (v *Verifier) Verify(token string, now time.Time) (Token, error) {
	if len(token) > maxToken {
		return Token{}, fmt.Errorf("token of %d bytes, want at most %d", len(token), maxToken)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return Token{}, fmt.Errorf("token: %w", err)
	}
	header := parsed.Headers[0]
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); typ != TokenType {
		return Token{}, fmt.Errorf("token of type %.40q, want %q", typ, TokenType)
	}
	key, err := v.key(header.KeyID, now)
	if err != nil {
		return Token{}, err
	}
	var c Claims
	if err := parsed.Claims(key, &c); err != nil {
		return Token{}, fmt.Errorf("token: %w", err)
	}
	if c.Expiry == nil || c.Subject == "" {
		return Token{}, errors.New("token: want claims exp and sub")
	}
	expected := jwt.Expected{Issuer: v.Issuer, AnyAudience: jwt.Audience{v.Issuer}, Time: now}
	if err := c.ValidateWithLeeway(expected, skew); err != nil {
		return Token{}, fmt.Errorf("token: %w", err)
	}
	return Token{Subject: c.Subject, ID: c.ID, Expiry: c.Expiry.Time(), Permissions: c.Permissions}, nil
}

// key returns the public key that has an ID.
func (v *Verifier) key(id string, now time.Time) (any, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	keys := v.set.Key(id)
	if len(keys) == 0 && (v.read.IsZero() || now.Sub(v.read).Abs() >= reread) {
		v.read = now
		var b []byte
		var set jose.JSONWebKeySet
		if b, v.err = v.Keys(); v.err == nil {
			v.err = json.Unmarshal(b, &set)
		}
		if v.err == nil { // else those of before stay
			v.set = set
		}
		keys = v.set.Key(id)
	}
	switch {
	case len(keys) > 0:
		return keys[0].Key, nil
	case v.err != nil:
		return nil, fmt.Errorf("keys of %s: %w", v.Issuer, v.err)
	}
	return nil, fmt.Errorf("token of key %.80q, which %s does not have", id, v.Issuer)
}
