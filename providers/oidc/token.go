package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
)

// token serves the endpoint at which a client exchanges a code or a refresh token for tokens.
func (s *issuerServer) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"invalid_request","error_description":"want a form of at most %d bytes"}`, maxBody)
		return
	}
	x := &exchange{from: r.RemoteAddr}
	x.refresh, x.secret = presented(r.PostFormValue("refresh_token"))
	x.presented = clientSecret(r)
	s.translate(r.PostForm, clientID(r))
	out := &answer{ResponseWriter: w, exchange: x, status: http.StatusOK}
	s.dex.ServeHTTP(out, r.WithContext(withExchange(r.Context(), x)))
	if out.status == http.StatusOK {
		return
	}
	var refused struct {
		Code string `json:"error"`
		Text string `json:"error_description"`
	}
	_ = json.Unmarshal(out.body, &refused) // an answer of Dex without them is refused as well
	write := s.audit.Stranger
	if x.replayed {
		write = s.audit.Write
		refused.Code, refused.Text = hostapi.CodeReplayed.Name, "presented a second time: all tokens that came of it have ended"
	}
	row := refusal(x.from, "tokens", x.account, x.client, refused.Code, refused.Text)
	if err := write(context.WithoutCancel(r.Context()), row); err != nil {
		s.log.Error("a refusal of tokens is not in the audit log", "error", err)
	}
}

// clientID returns the ID that a client presents, in the same way as clientSecret.
func clientID(r *http.Request) string {
	if id, _, ok := r.BasicAuth(); ok {
		id, _ = url.QueryUnescape(id)
		return id
	}
	return r.PostFormValue("client_id")
}

// clientSecret returns the secret that a client presents. It reads the secret in the same way as
// Dex (RFC 6749 section 2.3.1).
func clientSecret(r *http.Request) string {
	if _, secret, ok := r.BasicAuth(); ok {
		secret, _ = url.QueryUnescape(secret)
		return secret
	}
	return r.PostFormValue("client_secret")
}

// userinfo returns the claims about the user of an access token, unless the token was ended. Dex
// verifies the token. Claims that are read before that can only lead to a refusal.
func (s *issuerServer) userinfo(w http.ResponseWriter, r *http.Request) {
	var claims struct {
		Subject  string `json:"sub"`
		Audience string `json:"aud"`
		Issued   int64  `json:"iat"`
	}
	if _, rest, ok := strings.Cut(r.Header.Get("Authorization"), "."); ok {
		payload, _, _ := strings.Cut(rest, ".")
		b, _ := base64.RawURLEncoding.DecodeString(payload)
		_ = json.Unmarshal(b, &claims) // Dex refuses what cannot be read
	}
	user, connector := presented(claims.Subject)
	ended, err := s.tokens.ended(r.Context(), claims.Audience, person(connector, user), time.Unix(claims.Issued, 0))
	switch {
	case err != nil:
		s.log.Error("cannot tell whether a token was ended", "error", err)
		http.Error(w, "the provider failed: its log has the reason", http.StatusInternalServerError)
	case ended:
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "the token was ended", http.StatusUnauthorized)
	default:
		s.dex.ServeHTTP(w, r)
	}
}

// answer is a ResponseWriter that keeps the beginning of the body. It replaces Dex's error if the
// presented token was ended.
type answer struct {
	http.ResponseWriter
	exchange *exchange
	status   int
	body     []byte
	own      bool
}

func (a *answer) WriteHeader(status int) {
	if status == http.StatusOK || a.exchange.ended == "" {
		a.status = status
		a.ResponseWriter.WriteHeader(status)
		return
	}
	b := strictjson.Encode(map[string]string{"error": "invalid_grant", "error_description": a.exchange.ended})
	a.status, a.body, a.own = http.StatusBadRequest, b, true
	a.Header().Del("Content-Length")
	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(b) // who left reads no refusal
}

func (a *answer) Write(b []byte) (int, error) {
	if a.own {
		return len(b), nil
	}
	if a.status != http.StatusOK && len(a.body)+len(b) <= 4096 {
		a.body = append(a.body, b...)
	}
	return a.ResponseWriter.Write(b)
}
