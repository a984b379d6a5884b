package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/dexidp/dex/storage"
	"github.com/go-jose/go-jose/v4"
)

// logout ends the tokens that a client has for a user (OpenID Connect RP-Initiated Logout 1.0): the
// refresh token, and the access tokens that are used at /userinfo. The provider has no session that
// it could end. The browser is redirected only to addresses of the client.
func (s *issuerServer) logout(w http.ResponseWriter, r *http.Request) {
	if !s.bounded(w, r) {
		return
	}
	hint, verified := s.hint(r.Context(), r.Form.Get("id_token_hint"))
	client := r.Form.Get("client_id")
	if client == "" {
		client = hint.Audience
	} else if hint.Audience != "" && hint.Audience != client {
		s.page(w, http.StatusBadRequest, "Bad request", "The ID token is of another service than client_id.")
		return
	}
	if verified {
		if err := s.signOut(r, hint); err != nil {
			s.log.Error("a sign-out failed", "error", err)
			s.page(w, http.StatusInternalServerError, "Not signed out", "The provider failed: its log has the reason. Try again.")
			return
		}
	}
	to, state := r.Form.Get("post_logout_redirect_uri"), r.Form.Get("state")
	if to == "" {
		s.page(w, http.StatusOK, "Signed out", "You are signed out.")
		return
	}
	policy := s.policy()
	if policy == nil || !slices.Contains(policy.clients[client].PostLogoutRedirectURIs, to) {
		s.page(w, http.StatusBadRequest, "Bad request",
			fmt.Sprintf("You are not led on to %.100q: want one of the postLogoutRedirectURIs of the service.", to))
		return
	}
	u, err := url.Parse(to)
	if err != nil {
		panic(err) // it is granted
	}
	if state != "" {
		q := u.Query()
		q.Set("state", state)
		u.RawQuery = q.Encode()
	}
	http.Redirect(w, r, u.String(), http.StatusSeeOther)
}

// idHint contains the claims of an ID token that identify a sign-in.
type idHint struct {
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	Email    string `json:"email"`
}

// hint parses an ID token, which may have expired. The result verified is false if no current key
// verifies the token. No tokens are ended in that case.
func (s *issuerServer) hint(ctx context.Context, token string) (h idHint, verified bool) {
	algorithm, err := s.signer.Algorithm(ctx)
	if err != nil {
		return h, false
	}
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{algorithm})
	if err != nil {
		return h, false
	}
	keys, err := s.signer.ValidationKeys(ctx)
	if err != nil {
		return h, false
	}
	payload := jws.UnsafePayloadWithoutVerification()
	for _, key := range keys {
		if b, err := jws.Verify(key); err == nil {
			payload, verified = b, true
		}
	}
	if err := json.Unmarshal(payload, &h); err != nil {
		return idHint{}, false
	}
	return h, verified
}

// signOut ends the tokens of a sign-in and writes an audit row.
func (s *issuerServer) signOut(r *http.Request, h idHint) error {
	ctx := r.Context()
	user, connector := presented(h.Subject)
	refresh := ""
	switch session, err := s.storage.GetOfflineSessions(ctx, user, connector); {
	case err == nil && session.Refresh[h.Audience] != nil:
		refresh = session.Refresh[h.Audience].ID
	case err != nil && err != storage.ErrNotFound:
		return err
	}
	if err := s.tokens.end(ctx, refresh, h.Audience, person(connector, user)); err != nil {
		return err
	}
	return s.audit.Write(ctx, row(r.RemoteAddr, "sign-out", h.Email, h.Audience))
}
