package token

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/token/rules"
)

// keysPrefix is the beginning of the keys in the store under which the signing keys of tenants are
// kept.
const keysPrefix = "token/keys/"

// tenants reads and writes the state of tenants in the store.
type tenants struct {
	store store.Store
	key   *sealedstore.Key
}

// keys returns the signing keys of a tenant. A key stays published for the lifetime of the longest
// token after its last signature, and for another quarter of an hour because clocks differ.
func (t tenants) keys(of *Tenant) sealedstore.SigningKeys {
	return sealedstore.SigningKeys{Store: t.store, Seal: t.key, At: keysPrefix + of.name, Algorithm: jose.EdDSA, Lingers: longest + 15*time.Minute}
}

// issuing describes a token that is to be issued.
type issuing struct {
	tenant   *Tenant
	ring     sealedstore.SigningRing
	sub      string   // its claim
	subjects []string // that rules may name
	narrow   rules.Narrow
	now      time.Time
	counted  bool // by the quota, when it was tried before
}

// issued is a token that was issued, with the changes of the store on which it depends.
type issued struct {
	sealedstore.SigningChange
	tenant, sub, id, token string
	until                  time.Time
	permissions            []rules.Permission
}

// maxPermissions is the largest number of permissions in a token. It limits the size of the token,
// which is sent with each request.
const maxPermissions = 100

// issue signs a token with the permissions that the tenant's rules give. If they give none, the
// error is an *hostapi.Error.
func (t *Tokens) issue(ctx context.Context, i issuing) (issued, error) {
	has, err := t.tenants.inForce(ctx, i.tenant)
	if err != nil {
		return issued{}, err
	}
	permissions := has.Permissions(i.subjects, i.narrow)
	switch n := len(permissions); {
	case n == 0:
		return issued{}, hostapi.Errorf(hostapi.CodeNotGranted, "tenant %s permits %s nothing of what is requested: give it a policy, or a role by a grouping", i.tenant.name, i.sub)
	case n > maxPermissions:
		return issued{}, hostapi.Errorf(hostapi.CodeMalformed, "a token for %s at tenant %s would have %d permissions, want at most %d: narrow it with requested and resources", i.sub, i.tenant.name, n, maxPermissions)
	}
	if !i.counted {
		if after, ok := t.meters.take(i.tenant, i.sub, i.now); !ok {
			return issued{}, hostapi.Errorf(hostapi.CodeBusy, "tenant %s has its %d tokens of this minute, or those that one subject may have of them", i.tenant.name, i.tenant.TokensPerMinute).After(after)
		}
	}
	out := issued{SigningChange: sealedstore.SigningChange{If: has.as}, tenant: i.tenant.name, sub: i.sub, id: rand.Text(), until: i.now.Add(time.Duration(i.tenant.Lifetime) * time.Second), permissions: permissions}
	signer, err := i.ring.Signer(i.now).Signer(rules.TokenType)
	if err != nil {
		return issued{}, err
	}
	out.token, err = jwt.Signed(signer).Claims(rules.Claims{
		Claims: jwt.Claims{
			Issuer: i.tenant.issuer, Subject: i.sub, Audience: jwt.Audience{i.tenant.issuer}, ID: out.id,
			IssuedAt: jwt.NewNumericDate(i.now), Expiry: jwt.NewNumericDate(out.until),
		},
		Permissions: permissions,
	}).Serialize()
	return out, err
}

// scope returns the actions that a token permits, without duplicates.
func (i issued) scope() string {
	var all []string
	for _, p := range i.permissions { // sorted by action
		if len(all) == 0 || all[len(all)-1] != p.Action {
			all = append(all, p.Action)
		}
	}
	return strings.Join(all, " ")
}
