package token

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	dex "github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/crypto/bcrypt"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/tests/kit"
)

// upstream is a real Dex, at which alice signs in.
func upstream(t *testing.T) (issuer string, token func() string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s := memory.New(log)
	hash, err := bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.DefaultCost)
	if err != nil {
		t.Fatal(err)
	}
	s = storage.WithStaticPasswords(s, []storage.Password{{Email: "alice@example.org", Hash: hash, Username: "alice", UserID: "1"}}, log)
	s = storage.WithStaticConnectors(s, []storage.Connector{{ID: dex.LocalConnector, Name: "local", Type: dex.LocalConnector}})
	s = storage.WithStaticClients(s, []storage.Client{{ID: "ci", Secret: "ci-secret"}, {ID: "stranger", Secret: "ci-secret"}})
	var handler http.Handler
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(page.Close)
	keys, err := (&signer.LocalConfig{KeysRotationPeriod: "24h"}).Open(t.Context(), s, time.Hour, time.Now, log)
	if err != nil {
		t.Fatal(err)
	}
	handler, err = dex.NewServer(t.Context(), dex.Config{
		Issuer: page.URL, Storage: s, Signer: keys, Logger: log, PasswordConnector: dex.LocalConnector,
		AllowedGrantTypes: []string{"password"}, Web: dex.WebConfig{WebFS: web.FS()}, IDTokensValidFor: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return page.URL, func() string {
		return signIn(t, page.URL, "ci")
	}
}

func signIn(t *testing.T, issuer, client string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, issuer+"/token", strings.NewReader(url.Values{
		"grant_type": {"password"}, "scope": {"openid email groups"}, "username": {"alice@example.org"}, "password": {"correct horse"},
	}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(client, "ci-secret")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		IDToken string `json:"id_token"`
	}
	b, _ := io.ReadAll(resp.Body)
	if json.Unmarshal(b, &answer) != nil || answer.IDToken == "" {
		t.Fatalf("%d %s", resp.StatusCode, b)
	}
	return answer.IDToken
}

// TestUpstream checks that tokens of a real Dex are accepted, found by discovery or by the URL of
// its keys. It also checks that tokens are refused if they are for another audience, of another
// issuer, changed or expired.
func TestUpstream(t *testing.T) {
	issuer, token := upstream(t)
	for name, change := range map[string]func(*Issuer){
		"discovery":           func(*Issuer) {},
		"discovery elsewhere": func(i *Issuer) { i.Discovery = issuer },
		"keys":                func(i *Issuer) { i.JWKS = issuer + "/keys" },
	} {
		t.Run(name, func(t *testing.T) {
			tenant := acme(issuer)
			corp := tenant.Issuers["corp"]
			change(&corp)
			tenant.Issuers["corp"] = corp
			e := start(t, tenant)
			form := func(token string) url.Values {
				return url.Values{"subject_token": {token}, "subject_token_type": {TypeIDToken}}
			}
			good := token()
			status, answer := e.exchange(wiki, "acme", form(good))
			if status != http.StatusOK {
				t.Fatalf("%d %v", status, answer)
			}
			if got := e.verified(answer); got.Subject != "subject:corp/alice@example.org" || !got.May("cache.read", "cache:acme/payments/x") || got.May("stream.publish", "stream:acme/payments/x") {
				t.Errorf("%+v", got)
			}
			changed := []byte(good)
			changed[len(changed)-10] = map[bool]byte{true: 'B', false: 'A'}[changed[len(changed)-10] == 'A']
			for _, c := range []struct{ name, token, says string }{
				{"for another audience", signIn(t, issuer, "stranger"), "audiences"},
				{"changed", string(changed), "issuer corp"},
				{"of another issuer", signed(t, "https://evil.example", "ci"), "none of tenant acme"},
				{"with a key of its own", signed(t, issuer, "ci"), "issuer corp"},
			} {
				status, answer := e.exchange(wiki, "acme", form(c.token))
				if says := fmt.Sprint(answer["error_description"]); status != http.StatusBadRequest || !strings.Contains(says, c.says) {
					t.Errorf("%s: %d %v", c.name, status, answer)
				}
			}
		})
	}
}

// signed is a token of whoever signs with a key of its own.
func signed(t *testing.T, issuer, audience string) string {
	t.Helper()
	key := kit.NewKey()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(s).Claims(map[string]any{"iss": issuer, "aud": audience, "sub": "1", "email": "alice@example.org", "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestJWTSVID checks that a JWT-SVID for the tenant is a subject. A JWT-SVID for another audience
// is refused, and so is one whose key was not delivered.
func TestJWTSVID(t *testing.T) {
	e := start(t, acme("https://login.example.org"))
	ring := e.svidKeys()
	svid := func(audience string) url.Values { return e.jwtSVID(ring, audience) }
	if status, answer := e.exchange(alice, "acme", svid(acmeIssuer)); status != http.StatusServiceUnavailable {
		t.Errorf("without keys: %d %v", status, answer)
	}
	if err := os.WriteFile(e.keys, ring.JWKS(), 0o600); err != nil {
		t.Fatal(err)
	}
	status, answer := e.exchange(alice, "acme", svid(acmeIssuer))
	if status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	if got := e.verified(answer); got.Subject != wiki.String() {
		t.Errorf("%+v", got)
	}
	if status, answer := e.exchange(alice, "acme", svid("vault")); status != http.StatusBadRequest {
		t.Errorf("for others: %d %v", status, answer)
	}
	if status, answer := e.exchange(alice, "acme", e.jwtSVIDUntil(ring, acmeIssuer, time.Now().Add(-time.Second))); status != http.StatusBadRequest {
		t.Errorf("after its end: %d %v", status, answer)
	}
}

// svidKeys returns the keys that sign JWT-SVIDs of the cluster.
func (e *env) svidKeys() sealedstore.SigningRing {
	e.t.Helper()
	keys := sealedstore.SigningKeys{Store: e.Store, Seal: e.Key, At: "other/keys", Algorithm: jose.ES256, Lingers: time.Hour}
	ring, _, err := keys.Due(e.t.Context(), time.Now(), 1)
	if err != nil {
		e.t.Fatal(err)
	}
	return ring
}

// jwtSVID returns a form with a JWT-SVID of wiki on node elm, for an audience.
func (e *env) jwtSVID(ring sealedstore.SigningRing, audience string) url.Values {
	return e.jwtSVIDUntil(ring, audience, time.Now().Add(time.Minute))
}

func (e *env) jwtSVIDUntil(ring sealedstore.SigningRing, audience string, end time.Time) url.Values {
	e.t.Helper()
	s, err := ring.Signer(time.Now()).Signer("JWT")
	if err != nil {
		e.t.Fatal(err)
	}
	token, err := jwt.Signed(s).Claims(jwt.Claims{Issuer: "https://svids.example", Subject: wiki.String(), Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(time.Now()), Expiry: jwt.NewNumericDate(end)}).Claims(map[string]any{document.ClaimNode: "elm"}).Serialize()
	if err != nil {
		e.t.Fatal(err)
	}
	return url.Values{"subject_token": {token}, "subject_token_type": {TypeJWT}}
}
