package oidc

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// longest contains the parameters of a sign-in and the largest length of each. The lengths are
// limited because the parameters are part of a URL.
var longest = map[string]int{
	"client_id": 256, "redirect_uri": 2048, "scope": 1024, "state": 2048, "nonce": 512, "response_type": 64,
	"response_mode": 64, "code_challenge": 128, "code_challenge_method": 16, "connector_id": 64,
	"prompt": 64, "post_logout_redirect_uri": 2048, "login_hint": 256, "id_token_hint": 4096, "max_age": 16, "display": 16, "ui_locales": 256, "acr_values": 256,
}

const longestOther = 256

// bounded reports whether the parameters of a sign-in are short enough. If they are not, it shows
// an error page. It also removes the parameter approval_prompt, because no page asks for consent.
func (s *issuerServer) bounded(w http.ResponseWriter, r *http.Request) bool {
	if err := r.ParseForm(); err != nil {
		s.page(w, http.StatusBadRequest, "Bad request", fmt.Sprintf("The request cannot be read, want a form of at most %d bytes.", maxBody))
		return false
	}
	for name, values := range r.Form {
		most, ok := longest[name]
		if !ok {
			most = longestOther
		}
		if len(name) > longestOther || len(values) > 1 || len(values[0]) > most {
			s.page(w, http.StatusBadRequest, "Bad request",
				fmt.Sprintf("Parameter %.40q has %d values, the first of %d bytes, want one of at most %d.", name, len(values), len(values[0]), most))
			return false
		}
	}
	// Signing in is consent: services and users are of one cluster.
	r.Form.Del("approval_prompt")
	return true
}

// authorize serves the page to which a service redirects a browser for a sign-in.
func (s *issuerServer) authorize(w http.ResponseWriter, r *http.Request) {
	if s.bounded(w, r) {
		s.dex.ServeHTTP(w, r)
	}
}

// begin begins a sign-in of this browser, and shows the sign-in page.
func (s *issuerServer) begin(w http.ResponseWriter, r *http.Request) {
	if !s.bounded(w, r) || !s.challenged(w, r) {
		return
	}
	s.translate(r.Form, r.Form.Get("client_id"))
	in := &signIn{from: r.RemoteAddr, browser: s.signIns.browser(r)}
	if in.browser == "" {
		in.browser = rand.Text()
		s.signIns.set(w, browserCookie, in.browser)
	}
	s.dex.ServeHTTP(&redirect{&overruled{ResponseWriter: w, server: s, in: in, failed: &notThere}, in}, r.WithContext(context.WithValue(r.Context(), signInKey{}, in)))
}

// redirect changes the redirect to the page of a new sign-in. It replaces the ID of the sign-in by
// the sealed sign-in.
type redirect struct {
	http.ResponseWriter
	in *signIn
}

func (w *redirect) WriteHeader(status int) {
	to := w.Header().Get("Location")
	if u, err := url.Parse(to); err == nil && to != "" && w.in.sealed != "" {
		q := u.Query()
		q.Set("state", w.in.sealed)
		u.RawQuery = q.Encode()
		w.Header().Set("Location", u.String())
	}
	w.ResponseWriter.WriteHeader(status)
}

// s256 matches a code challenge of method S256 (RFC 7636 section 4.2).
var s256 = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// beyond returns a requested scope that the client may not have, or "" if there is none. Dex itself
// refuses unknown scopes.
func (s *issuerServer) beyond(client, requested string) string {
	policy := s.policy()
	if policy == nil || policy.clients[client].Scopes == nil {
		return ""
	}
	for scope := range strings.FieldsSeq(requested) {
		if !slices.Contains(policy.clients[client].Scopes, scope) {
			return scope
		}
	}
	return ""
}

// translate replaces scopes that only the client has by scopes that Dex knows.
func (s *issuerServer) translate(form url.Values, client string) {
	if policy := s.policy(); policy != nil && form.Get("scope") != "" {
		form.Set("scope", policy.clients[client].known(form.Get("scope")))
	}
}

// challenged refuses a sign-in with scopes that the client may not have, and a sign-in with a code
// challenge that has another method than S256. A code challenge is required, except from a client
// that has a secret and was registered by a release that did not require a challenge. If the method
// were missing, Dex would take the challenge for the verifier itself.
func (s *issuerServer) challenged(w http.ResponseWriter, r *http.Request) bool {
	challenge, method := r.Form.Get("code_challenge"), r.Form.Get("code_challenge_method")
	client, err := s.storage.GetClient(r.Context(), r.Form.Get("client_id"))
	redirectURI, bad := url.QueryUnescape(r.Form.Get("redirect_uri"))
	if err != nil || bad != nil || !slices.Contains(client.RedirectURIs, redirectURI) {
		return true // Dex says what is wrong, and leads nobody there
	}
	if scope := s.beyond(client.ID, r.Form.Get("scope")); scope != "" {
		back(w, r, redirectURI, r.Form.Get("state"), "invalid_scope", fmt.Sprintf("the topology gives this client no scope %.40q", scope))
		return false
	}
	registered, _, err := s.clients.get(r.Context(), client.ID)
	if err != nil {
		s.log.Error("a client cannot be read", "client", client.ID, "error", err)
		registered.PKCE = true
	}
	if challenge == "" && method == "" && !client.Public && !registered.PKCE || method == "S256" && s256.MatchString(challenge) {
		return true
	}
	back(w, r, redirectURI, r.Form.Get("state"), "invalid_request", "want code_challenge_method=S256 and a code_challenge of 43 characters (RFC 7636)")
	return false
}
