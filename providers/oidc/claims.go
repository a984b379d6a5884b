package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dexidp/dex/server/signer"
)

// sources maps the claims that can be copied to the scope that each is part of. The claim "sub" is
// part of all tokens.
var sources = map[string]string{"email": "email", "groups": "groups", "name": "profile", "preferred_username": "profile", "sub": ""}

// fixed lists the claims that a client cannot have another value of. They say for whom a token is
// and how long it lasts, or identify the person.
var fixed = []string{
	"acr", "amr", "at_hash", "aud", "auth_time", "azp", "c_hash", "cnf", "email", "email_verified", "exp", "federated_claims",
	"groups", "iat", "iss", "jti", "nbf", "nonce", "s_hash", "sid", "sub",
}

func validClaims(claims map[string]string) error {
	for name, source := range claims {
		if _, ok := sources[source]; !ok {
			return fmt.Errorf("claims: %q: no claim %q that it could come from", name, source)
		}
		if name == "" || slices.Contains(fixed, name) {
			return fmt.Errorf("claims: %q: want another name", name)
		}
	}
	return nil
}

// claiming is a signer that gives the tokens of each client the claims and groups that the policy
// declares for it. Dex has no such setting, and signs every token with it.
type claiming struct {
	signer.Signer
	policy func() *Policy
}

func (c claiming) Sign(ctx context.Context, payload []byte) (string, error) {
	payload, err := c.policy().claim(payload)
	if err != nil {
		return "", err
	}
	return c.Signer.Sign(ctx, payload)
}

// claim returns the claims of a token with those of its client.
func (p *Policy) claim(payload []byte) ([]byte, error) {
	var of struct {
		Client string   `json:"aud"`
		Groups []string `json:"groups"`
	}
	if err := json.Unmarshal(payload, &of); err != nil {
		return nil, fmt.Errorf("claims of a token: %w", err)
	}
	if p == nil {
		return payload, nil
	}
	client := p.clients[of.Client]
	if client.Claims == nil && client.Groups == nil {
		return payload, nil
	}
	var claims map[string]json.RawMessage
	if err := json.Unmarshal(payload, &claims); err != nil {
		return nil, fmt.Errorf("claims of a token: %w", err)
	}
	if client.Groups != nil && of.Groups != nil {
		named, err := json.Marshal(client.named(of.Groups))
		if err != nil {
			return nil, err
		}
		claims["groups"] = named
	}
	// A claim can be the source of another, so all values are read first.
	copies := map[string]json.RawMessage{}
	for name, source := range client.Claims {
		copies[name] = claims[source]
	}
	for name, value := range copies {
		if delete(claims, name); value != nil {
			claims[name] = value
		}
	}
	return json.Marshal(claims)
}

// named returns the groups of a person under the names that the client knows.
func (r Request) named(groups []string) []string {
	named := []string{}
	for name, of := range r.Groups {
		if slices.ContainsFunc(of, func(g string) bool { return slices.Contains(groups, g) }) {
			named = append(named, name)
		}
	}
	slices.Sort(named)
	return named
}

// known returns requested scopes in which scopes that only this client has are replaced by the
// scopes that its claims need.
func (r Request) known(requested string) string {
	var all []string
	add := func(scope string) {
		if scope != "" && !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	for scope := range strings.FieldsSeq(requested) {
		if slices.Contains(scopes, scope) || !slices.Contains(r.Scopes, scope) {
			add(scope)
			continue
		}
		if r.Groups != nil {
			add("groups")
		}
		for _, source := range r.Claims {
			add(sources[source])
		}
	}
	return strings.Join(all, " ")
}
