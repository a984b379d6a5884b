package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/spiffe/go-spiffe/v2/bundle/jwtbundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/jwtsvid"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/token/rules"
)

// subject is who exchanges something for a token.
type subject struct {
	sub      string
	subjects []string // sub, and its groups
	by       string   // what proves it: "svid", "jwt-svid", or the name of an issuer
}

// algorithms that issuers may sign with: none with a secret that both sides know.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// maxGroups bounds what is looked up for one token.
const maxGroups = 200

// subjectOf verifies a subject token.
func (t *Tokens) subjectOf(ctx context.Context, tenant *Tenant, token, trustDomain string, revoked *florete.Revocations, now time.Time) (subject, error) {
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
			return t.issuers.subject(ctx, name, issuer, token)
		}
	}
	if t.SVIDKeys != "" && strings.HasPrefix(unverified.Subject, "spiffe://"+trustDomain+"/") {
		return t.ofSVID(tenant, token, trustDomain, revoked, now)
	}
	return subject{}, malformed("subject_token: of issuer %.200q, which is none of tenant %s", unverified.Issuer, tenant.name)
}

// ofSVID verifies a JWT-SVID of the cluster, for the tenant.
func (t *Tokens) ofSVID(tenant *Tenant, token, trustDomain string, revoked *florete.Revocations, now time.Time) (subject, error) {
	td, err := spiffeid.TrustDomainFromString(trustDomain)
	if err != nil {
		return subject{}, err
	}
	b, err := os.ReadFile(t.SVIDKeys)
	if err != nil {
		return subject{}, api.Errorf(api.Transient, api.CodeMissing, "keys of JWT-SVIDs: %v: flor status has need jwt-keys", err)
	}
	bundle, err := jwtbundle.Parse(td, b)
	if err != nil {
		return subject{}, fmt.Errorf("%s: %w", t.SVIDKeys, err)
	}
	svid, err := jwtsvid.ParseAndValidate(token, bundle, []string{tenant.issuer})
	if err != nil {
		return subject{}, malformed("subject_token: of no issuer of tenant %s, and no JWT-SVID of %s for audience %s: %v", tenant.name, trustDomain, tenant.issuer, err)
	}
	id, err := florete.ParseID(svid.ID.String())
	if err != nil {
		return subject{}, malformed("subject_token: %v", err)
	}
	node, _ := svid.Claims[florete.ClaimNode].(string)
	issued, _ := svid.Claims["iat"].(float64)
	if err := refuseRevoked(revoked, id, node, time.Unix(int64(issued), 0)); err != nil {
		return subject{}, err
	}
	return subject{id.String(), []string{id.String()}, "jwt-svid"}, nil
}

// issuers are those whose keys this process knows.
type issuers struct {
	mu  sync.Mutex
	all map[source]*oidc.IDTokenVerifier
}

// source is an issuer, and where its keys are.
type source struct{ issuer, discovery, jwks string }

// Bounds on what issuers answer.
const (
	issuerPatience = 10 * time.Second
	issuerMost     = 1 << 20
)

// client reads what issuers serve.
var client = &http.Client{Timeout: issuerPatience, Transport: bounded{http.DefaultTransport}}

type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, issuerMost), resp.Body}
	}
	return resp, err
}

// verifier is that of an issuer. Its keys are fetched when a token has one that is not known.
func (i *issuers) verifier(issuer Issuer) (*oidc.IDTokenVerifier, error) {
	at := source{issuer.Issuer, issuer.Discovery, issuer.JWKS}
	i.mu.Lock()
	known := i.all[at]
	i.mu.Unlock()
	if known != nil {
		return known, nil
	}
	// Of the process: later fetches of keys use it, too.
	ctx := oidc.ClientContext(context.Background(), client)
	// Audiences are several, and compared below.
	config := &oidc.Config{SkipClientIDCheck: true}
	var v *oidc.IDTokenVerifier
	if issuer.JWKS != "" {
		for _, a := range algorithms {
			config.SupportedSigningAlgs = append(config.SupportedSigningAlgs, string(a))
		}
		v = oidc.NewVerifier(issuer.Issuer, oidc.NewRemoteKeySet(ctx, issuer.JWKS), config)
	} else {
		below := issuer.Issuer
		if issuer.Discovery != "" {
			ctx, below = oidc.InsecureIssuerURLContext(ctx, issuer.Issuer), issuer.Discovery
		}
		p, err := oidc.NewProvider(ctx, below)
		if err != nil {
			return nil, err
		}
		v = p.Verifier(config)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.all == nil {
		i.all = map[source]*oidc.IDTokenVerifier{}
	}
	i.all[at] = v
	return v, nil
}

// subject verifies a token of an issuer, and maps its claims.
func (i *issuers) subject(ctx context.Context, name string, issuer Issuer, token string) (subject, error) {
	v, err := i.verifier(issuer)
	if err != nil {
		return subject{}, api.Errorf(api.Transient, api.CodeUnavailable, "issuer %s: %v", name, err)
	}
	verified, err := v.Verify(ctx, token)
	if err != nil {
		return subject{}, malformed("subject_token of issuer %s: %v", name, err)
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

// groupsOf are the groups in a claim: a list, or one.
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
	return api.Errorf(api.Invalid, api.CodeMalformed, format, args...)
}
