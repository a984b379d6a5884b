package workload_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	api "github.com/spiffe/go-spiffe/v2/proto/spiffe/workload"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/jwtsvid"
	"github.com/spiffe/go-spiffe/v2/workloadapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
)

// signer is a key that signs JWT-SVIDs for tests.
type signer struct {
	id  string
	key *ecdsa.PrivateKey
}

func newSigner(t *testing.T, id string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{id, key}
}

func (s signer) sign(t *testing.T, sub, audience string, issued time.Time) string {
	t.Helper()
	by, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: s.key, KeyID: s.id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(by).Claims(jwt.Claims{
		Issuer: kit.TokenIssuer, Subject: sub, Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(issued), Expiry: jwt.NewNumericDate(issued.Add(5 * time.Minute)),
	}).Claims(map[string]any{document.ClaimNode: "ursula"}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// keys delivers the public keys of the given signers to the host.
func (h *host) keys(signers ...signer) {
	set := jose.JSONWebKeySet{}
	for _, s := range signers {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: s.key.Public(), KeyID: s.id, Algorithm: string(jose.ES256)})
	}
	h.put("jwt-keys", document.FileJWTKeys, set)
}

// tokens delivers the JWT-SVIDs of a service to the host.
func (h *host) tokens(id spiffe.ID, byAudience map[string]string) {
	h.put("jwt-service-"+id.Name(), document.FileTokens, byAudience)
}

func (h *host) put(need, file string, v any) {
	kit.Swap(hostdir.Current(h.Layout.Need(need)), map[string][]byte{file: kit.JSON(v)})
}

// jwtHost returns a host with JWT-SVIDs of the services wiki and blog for the audience vault.
func jwtHost(t *testing.T) (*host, signer) {
	t.Helper()
	may := []document.Caller{{ID: wiki, UIDs: me(), Workload: true}, {ID: blog, UIDs: me(), Workload: true}, {ID: db, UIDs: me()}}
	h, s := newHost(t, may...), newSigner(t, "1")
	h.Needs = []document.Need{kit.JWTNeed(kit.ID("node/ursula")), kit.JWTNeed(wiki, "vault", "s3"), kit.JWTNeed(blog, "vault"), kit.JWTNeed(db, "bank")}
	h.accept(may...)
	h.keys(s)
	for _, id := range []spiffe.ID{wiki, blog, db} {
		h.tokens(id, map[string]string{"vault": s.sign(t, id.String(), "vault", time.Now()), "bank": s.sign(t, id.String(), "bank", time.Now())})
	}
	return h, s
}

func (h *host) source(t *testing.T) *workloadapi.JWTSource {
	t.Helper()
	source, err := workloadapi.NewJWTSource(within(t), workloadapi.WithClientOptions(workloadapi.WithAddr(h.addr)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	return source
}

// TestJWTSVIDs checks that a process gets the JWT-SVIDs of all its identities, or of the identity
// that its request names.
func TestJWTSVIDs(t *testing.T) {
	h, _ := jwtHost(t)
	h.serve(t)
	source := h.source(t)
	all, err := source.FetchJWTSVIDs(within(t), jwtsvid.Params{Audience: "vault"})
	if err != nil || len(all) != 2 || all[0].ID != wiki.SPIFFE() || all[1].ID != blog.SPIFFE() || all[1].Hint != "blog.ursula" {
		t.Fatalf("%v, %v", all, err)
	}
	one, err := source.FetchJWTSVID(within(t), jwtsvid.Params{Audience: "vault", Subject: blog.SPIFFE()})
	if err != nil || one.ID != blog.SPIFFE() {
		t.Fatalf("%v, %v", one, err)
	}
	valid, err := workloadapi.ValidateJWTSVID(within(t), one.Marshal(), "vault", workloadapi.WithAddr(h.addr))
	if err != nil || valid.ID != blog.SPIFFE() {
		t.Errorf("%v, %v", valid, err)
	}
}

func TestJWTRefused(t *testing.T) {
	h, s := jwtHost(t)
	h.tokens(blog, map[string]string{"vault": s.sign(t, blog.String(), "vault", time.Now().Add(-5*time.Minute-20*time.Second))})
	h.serve(t)
	for name, c := range map[string]struct {
		header   string
		audience []string
		id       string
		code     codes.Code
		part     string
	}{
		"no header":               {"", []string{"vault"}, "", codes.InvalidArgument, "header"},
		"no audience":             {"true", nil, "", codes.InvalidArgument, "want one"},
		"an empty audience":       {"true", []string{""}, "", codes.InvalidArgument, "want one"},
		"two audiences":           {"true", []string{"vault", "s3"}, "", codes.InvalidArgument, "want one"},
		"an undeclared audience":  {"true", []string{"bank"}, "", codes.PermissionDenied, "services.wiki.jwtAudiences"},
		"an identity without":     {"true", []string{"bank"}, db.String(), codes.PermissionDenied, "no identity"},
		"another identity":        {"true", []string{"vault"}, "spiffe://demo.flor/service/x", codes.PermissionDenied, "no identity"},
		"one that is not there":   {"true", []string{"s3"}, "", codes.Unavailable, "not delivered yet"},
		"one that is over":        {"true", []string{"vault"}, blog.String(), codes.Unavailable, "expired"},
		"not of its own audience": {"true", []string{"s3"}, blog.String(), codes.PermissionDenied, "services.blog.jwtAudiences"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			if c.header != "" {
				ctx = withHeader(ctx, c.header)
			}
			r, err := h.stub(t).FetchJWTSVID(ctx, &api.JWTSVIDRequest{Audience: c.audience, SpiffeId: c.id})
			if status.Code(err) != c.code || !strings.Contains(err.Error(), c.part) {
				t.Errorf("%v, %v, want %s with %q", r, err, c.code, c.part)
			}
		})
	}
}

// TestJWTStranger checks that a process without an identity gets no tokens and no keys, and cannot
// have a token verified.
func TestJWTStranger(t *testing.T) {
	h, s := jwtHost(t)
	h.accept(document.Caller{ID: wiki, UIDs: me()})
	h.serve(t)
	stub, ctx := h.stub(t), withHeader(within(t), "true")
	_, fetch := stub.FetchJWTSVID(ctx, &api.JWTSVIDRequest{Audience: []string{"vault"}})
	_, validate := stub.ValidateJWTSVID(ctx, &api.ValidateJWTSVIDRequest{Audience: "vault", Svid: s.sign(t, wiki.String(), "vault", time.Now())})
	stream, bundles := stub.FetchJWTBundles(ctx, &api.JWTBundlesRequest{})
	if bundles == nil {
		_, bundles = stream.Recv()
	}
	for _, err := range []error{fetch, validate, bundles} {
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("%v, want %s", err, codes.PermissionDenied)
		}
	}
}

func TestValidate(t *testing.T) {
	h, s := jwtHost(t)
	h.serve(t)
	now := time.Now()
	for name, c := range map[string]struct{ token, audience, part string }{
		"no token":               {"", "vault", "unable to parse"},
		"no audience":            {s.sign(t, db.String(), "vault", now), "", "no audience"},
		"another audience":       {s.sign(t, db.String(), "vault", now), "s3", "expected audience"},
		"another key, equal kid": {newSigner(t, "1").sign(t, db.String(), "vault", now), "vault", "unable to get claims"},
		"an unknown key":         {newSigner(t, "2").sign(t, db.String(), "vault", now), "vault", "no JWT authority"},
		"another trust domain":   {s.sign(t, "spiffe://evil.flor/service/db", "vault", now), "vault", "no bundle"},
		"over":                   {s.sign(t, db.String(), "vault", now.Add(-7*time.Minute)), "vault", "expired"},
		"not a SPIFFE ID":        {s.sign(t, "db", "vault", now), "vault", "subject"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := h.stub(t).ValidateJWTSVID(withHeader(within(t), "true"), &api.ValidateJWTSVIDRequest{Audience: c.audience, Svid: c.token})
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.part) {
				t.Errorf("%v, %v, want %q", r, err, c.part)
			}
		})
	}
}

// TestJWTUpdates checks that new keys reach clients that watch for updates at once, and that
// revoked identities are refused.
func TestJWTUpdates(t *testing.T) {
	h, s := jwtHost(t)
	h.serve(t)
	source := h.source(t)
	next := newSigner(t, "2")
	h.keys(s, next)
	kit.Eventually(t, "an update with the new key", func() bool {
		bundle, err := source.GetJWTBundleForTrustDomain(spiffeid.RequireTrustDomainFromString(kit.Domain))
		if err != nil {
			t.Fatal(err)
		}
		return bundle.HasJWTAuthority("2")
	})
	h.put("jwt-keys", document.FileJWTKeys, "no keys") // the previous keys remain
	for _, c := range []struct {
		target  spiffe.ID
		revoked map[spiffe.ID]bool
	}{
		{wiki, map[spiffe.ID]bool{wiki: true}},
		{kit.ID("node/ursula"), map[spiffe.ID]bool{wiki: true, blog: true, db: true}},
	} {
		h.list++
		kit.WriteRevocations(h.Layout.Revocations(), kit.Revocations(h.list, kit.SigningKey("demo-1"), revocation.Target{ID: c.target}))
		for _, id := range []spiffe.ID{wiki, blog, db} {
			kit.Eventually(t, fmt.Sprintf("%s is revoked: token of %s: %v", c.target.Short(), id.Short(), c.revoked[id]), func() bool {
				return (h.validate(t, next.sign(t, id.String(), "vault", time.Now())) != nil) == c.revoked[id]
			})
		}
	}
	if _, err := source.FetchJWTSVID(within(t), jwtsvid.Params{Audience: "vault"}); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "is revoked") {
		t.Errorf("of a revoked node: %v", err)
	}
}

func (h *host) validate(t *testing.T, token string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	_, err := h.stub(t).ValidateJWTSVID(withHeader(ctx, "true"), &api.ValidateJWTSVIDRequest{Audience: "vault", Svid: token})
	return err
}

// TestTokensUnreadable checks that a file with unreadable tokens does not affect other tokens.
func TestTokensUnreadable(t *testing.T) {
	h, _ := jwtHost(t)
	h.serve(t)
	source := h.source(t) // everything has been read by now
	h.put("jwt-service-wiki", document.FileTokens, json.RawMessage(`["no object"]`))
	time.Sleep(200 * time.Millisecond) // the change has been read by now
	all, err := source.FetchJWTSVIDs(within(t), jwtsvid.Params{Audience: "vault"})
	if err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestSpiffeHelperTokens checks that spiffe-helper provides tokens and keys as files to a program
// without SPIFFE support. A new token must be in place before the first expires.
func TestSpiffeHelperTokens(t *testing.T) {
	helper := tool(t, "tools/spiffe-helper", "spiffe-helper")
	h, s := jwtHost(t)
	const left = 4 * time.Second
	first := s.sign(t, wiki.String(), "vault", time.Now().Add(left-5*time.Minute))
	h.tokens(wiki, map[string]string{"vault": first})
	h.serve(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "helper.conf")
	err := os.WriteFile(config, fmt.Appendf(nil, `
agent_address = %q
cert_dir = %q
daemon_mode = true
hint = "wiki"
jwt_svids = [{jwt_audience = "vault", jwt_svid_file_name = "token"}]
jwt_bundle_file_name = "jwks.json"
`, h.socket, dir), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	run(t, helper, "-config", config)
	written := func(want string) bool {
		token, _ := os.ReadFile(filepath.Join(dir, "token"))
		jwks, err := os.ReadFile(filepath.Join(dir, "jwks.json"))
		return string(token) == want && err == nil && len(jwks) > 0
	}
	kit.Eventually(t, "the first token is there", func() bool { return written(first) })
	second := s.sign(t, wiki.String(), "vault", time.Now())
	h.tokens(wiki, map[string]string{"vault": second})
	kit.Eventually(t, "the renewed one is there", func() bool { return written(second) })
}
