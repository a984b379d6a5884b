package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/spiffe/go-spiffe/v2/bundle/jwtbundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/jwtsvid"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/token/rules"
)

// subject is the identity that exchanges a proof of itself for a token.
type subject struct {
	sub      string
	subjects []string // sub, and its groups
	by       string   // what proves it: "svid", "jwt-svid", or the name of an issuer
}

// algorithms lists the signature algorithms that issuers may use. None of them uses a shared
// secret.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// maxGroups is the largest number of groups that are looked up for one token.
const maxGroups = 200

// subjectOf verifies the subject token of an exchange, and returns the subject.
func (t *Tokens) subjectOf(ctx context.Context, tenant *Tenant, token, trustDomain string, revoked *trust.Revocations, now time.Time) (subject, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	var unverified jwt.Claims
	if err == nil {
		err = parsed.UnsafeClaimsWithoutVerification(&unverified)
	}
	if err != nil {
		return subject{}, malformed("subject_token: want a signed JWT: %v", err)
	}
	for name, issuer := range tenant.Issuers {
		if issuer.Issuer == unverified.Issuer {
			return t.issuers.subject(ctx, name, issuer, token, t.Logger)
		}
	}
	if t.SVIDKeys != "" && strings.HasPrefix(unverified.Subject, "spiffe://"+trustDomain+"/") {
		return t.ofSVID(tenant, token, trustDomain, revoked, now)
	}
	return subject{}, malformed("subject_token: of issuer %.200q, which is none of tenant %s", unverified.Issuer, tenant.name)
}

// ofSVID verifies a JWT-SVID of the cluster that was issued for the tenant, and returns its
// subject.
func (t *Tokens) ofSVID(tenant *Tenant, token, trustDomain string, revoked *trust.Revocations, now time.Time) (subject, error) {
	td, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil {
		return subject{}, err
	}
	b, err := os.ReadFile(t.SVIDKeys)
	if err != nil {
		return subject{}, hostapi.Errorf(hostapi.CodeMissing, "keys of JWT-SVIDs: %v: flor status has need jwt-keys", err)
	}
	bundle, err := jwtbundle.Parse(td, b)
	if err != nil {
		return subject{}, fmt.Errorf("%s: %w", t.SVIDKeys, err)
	}
	svid, err := jwtsvid.ParseAndValidate(token, bundle, []string{tenant.issuer})
	if err != nil {
		return subject{}, malformed("subject_token: of no issuer of tenant %s, and no JWT-SVID of %s for audience %s: %v", tenant.name, trustDomain, tenant.issuer, err)
	}
	if !svid.Expiry.After(now) { // go-spiffe accepts it for a minute more
		return subject{}, malformed("subject_token: a JWT-SVID that ended at %s, want one that is still good: fetch another", svid.Expiry.UTC().Format(time.RFC3339))
	}
	id, err := spiffe.ParseID(svid.ID.String())
	if err != nil {
		return subject{}, malformed("subject_token: %v", err)
	}
	node, _ := svid.Claims[document.ClaimNode].(string)
	issued, _ := svid.Claims["iat"].(float64)
	if err := hostapi.RefuseIssue(revoked.CheckIssued(id, node, time.Unix(int64(issued), 0))); err != nil {
		return subject{}, err
	}
	return subject{id.String(), []string{id.String()}, "jwt-svid"}, nil
}

// subject verifies a token of an external issuer, and returns the subject that its claims describe.
func (i *issuers) subject(ctx context.Context, name string, issuer Issuer, token string, log *slog.Logger) (subject, error) {
	verified, err := i.verify(ctx, name, issuer, token, log)
	if err != nil {
		return subject{}, err
	}
	meant := false
	for _, a := range verified.Audience {
		for _, b := range issuer.Audiences {
			meant = meant || a == b
		}
	}
	if !meant {
		return subject{}, malformed("subject_token of issuer %s: for audiences %.200q, want one of %q", name, verified.Audience, issuer.Audiences)
	}
	var claims map[string]json.RawMessage
	if err := verified.Claims(&claims); err != nil {
		return subject{}, malformed("subject_token of issuer %s: %v", name, err)
	}
	var value string
	if err := json.Unmarshal(claims[issuer.SubjectClaim], &value); err != nil {
		return subject{}, malformed("subject_token of issuer %s: claim %q: want a string", name, issuer.SubjectClaim)
	}
	s := subject{by: name}
	if s.sub, err = rules.Subject(name, value); err != nil {
		return subject{}, malformed("subject_token: %v", err)
	}
	groups, err := groupsOf(claims, issuer.GroupsClaim)
	if err != nil {
		return subject{}, malformed("subject_token of issuer %s: %v", name, err)
	}
	s.subjects = []string{s.sub}
	for _, g := range groups {
		if of, err := rules.Group(name, g); err == nil { // no rule can name the others
			s.subjects = append(s.subjects, of)
		}
	}
	return s, nil
}

// groupsOf returns the groups in a claim. The claim is a list or a single group.
func groupsOf(claims map[string]json.RawMessage, claim string) (groups []string, err error) {
	raw, ok := claims[claim]
	if claim == "" || !ok {
		return nil, nil
	}
	if json.Unmarshal(raw, &groups) != nil {
		groups = []string{""}
		if json.Unmarshal(raw, &groups[0]) != nil {
			return nil, fmt.Errorf("claim %q: want strings", claim)
		}
	}
	if len(groups) > maxGroups {
		return nil, errors.New("it has more than 200 groups")
	}
	return groups, nil
}

func malformed(format string, args ...any) error {
	return hostapi.Errorf(hostapi.CodeMalformed, format, args...)
}
