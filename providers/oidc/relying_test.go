package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dexconn "github.com/dexidp/dex/connector"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TestUpstreamElsewhere checks that an upstream issuer cannot make the provider connect to a server
// that only the provider's host can reach.
func TestUpstreamElsewhere(t *testing.T) {
	var asked atomic.Int64
	inside := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "INTERNAL-SECRET")
	})
	plain, secure := httptest.NewServer(inside), httptest.NewTLSServer(inside)
	defer plain.Close()
	defer secure.Close()
	roots := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	public := jose.JSONWebKey{Key: key.Public(), KeyID: "k"}
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil))
	for name, c := range map[string]struct {
		lead func(metadata map[string]any, moved map[string]string) // paths that redirect
		want string                                                 // empty if the sign-in succeeds
	}{
		"its own endpoints": {func(map[string]any, map[string]string) {}, ""},
		"discovery moved": {func(_ map[string]any, moved map[string]string) {
			moved["/.well-known/openid-configuration"] = plain.URL
		}, "redirects to another origin"},
		"discovery moved to https": {func(_ map[string]any, moved map[string]string) {
			moved["/.well-known/openid-configuration"] = secure.URL
		}, "redirects to another origin"},
		"token endpoint": {func(m map[string]any, _ map[string]string) { m["token_endpoint"] = plain.URL }, "write that address in the topology"},
		"token endpoint of a cloud": {
			func(m map[string]any, _ map[string]string) { m["token_endpoint"] = "https://169.254.169.254/latest" }, "169.254.169.254, which is no address for a server of others",
		},
		"token endpoint with https": {func(m map[string]any, _ map[string]string) { m["token_endpoint"] = secure.URL }, "which is no address for a server of others"},
		"token endpoint moved":      {func(_ map[string]any, moved map[string]string) { moved["/token"] = plain.URL }, "redirects to another origin"},
		"keys":                      {func(m map[string]any, _ map[string]string) { m["jwks_uri"] = plain.URL }, "write that address in the topology"},
		"keys with https":           {func(m map[string]any, _ map[string]string) { m["jwks_uri"] = secure.URL }, "which is no address for a server of others"},
		"keys moved":                {func(_ map[string]any, moved map[string]string) { moved["/keys"] = secure.URL }, "redirects to another origin"},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			metadata, moved := map[string]any{"id_token_signing_alg_values_supported": []string{"ES256"}}, map[string]string{}
			issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case moved[r.URL.Path] != "":
					http.Redirect(w, r, moved[r.URL.Path], http.StatusTemporaryRedirect)
				case r.URL.Path == "/.well-known/openid-configuration":
					must(0, json.NewEncoder(w).Encode(metadata))
				case r.URL.Path == "/keys":
					must(0, json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public}}))
				case r.URL.Path == "/token":
					token := must(jwt.Signed(signer).Claims(map[string]any{
						"iss": metadata["issuer"], "aud": "florete", "sub": "d-1", "exp": time.Now().Add(time.Hour).Unix(), "name": "dora", "groups": []any{"guests", map[string]any{"name": "staff"}},
					}).Serialize())
					must(0, json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": token}))
				}
			}))
			defer issuer.Close()
			metadata["issuer"], metadata["authorization_endpoint"] = issuer.URL, issuer.URL+"/auth"
			metadata["token_endpoint"], metadata["jwks_uri"] = issuer.URL+"/token", issuer.URL+"/keys"
			c.lead(metadata, moved)
			u := Upstream{Issuer: issuer.URL, ClientID: "florete", Groups: "groups", Roots: roots}
			p, err := newRelyingParty(t.Context(), u, issuerURL+"/callback", "secret")
			var id dexconn.Identity
			if err == nil {
				id, err = p.HandleCallback(dexconn.Scopes{}, nil, httptest.NewRequest("GET", issuerURL+"/callback?code=x", nil))
			}
			if c.want == "" && (err != nil || id.UserID != "d-1" || strings.Join(id.Groups, " ") != "guests staff") {
				t.Errorf("got %+v, %v", id, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if asked.Load() != 0 {
				t.Error("a server of the host was asked")
			}
		})
	}
}
