package oidc

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/florete/florete/providers/announced"
)

// maxBody is the largest size of a request's body, in bytes.
const maxBody = 16 << 10

// routes serves only the pages of Dex that a sign-in needs. It omits pages such as Dex's device
// flow and introspection, because these answer and write to the store without knowing the caller.
func (s *issuerServer) routes(assets fs.FS, discovery []byte) http.Handler {
	mux := http.NewServeMux()
	for _, page := range []string{"GET /static/", "GET /robots.txt"} {
		mux.Handle(page, s.dex)
	}
	for page, handler := range map[string]http.HandlerFunc{
		"/keys":     s.dex.ServeHTTP,
		"/token":    s.token,
		"/userinfo": s.userinfo,
		"/.well-known/openid-configuration": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write(discovery)
		},
	} {
		h := s.crossOrigin(handler)
		mux.Handle("OPTIONS "+page, h)
		if page != "/token" {
			mux.Handle("GET "+page, h)
		}
		if page == "/token" || page == "/userinfo" {
			mux.Handle("POST "+page, h)
		}
	}
	for page, handler := range map[string]http.HandlerFunc{
		"GET /auth":                    s.authorize,
		"POST /auth":                   s.authorize,
		"GET /auth/{connector}":        s.begin,
		"GET /auth/{connector}/login":  s.login,
		"POST /auth/{connector}/login": s.login,
		"GET /callback":                s.callback,
		"POST /person":                 s.person,
		"GET /logout":                  s.logout,
		"POST /logout":                 s.logout,
	} {
		mux.HandleFunc(page, handler)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, assets, "static/welcome.html")
	})
	return http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// No form-action: browsers apply it to where signing in leads back to.
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		// With no-referrer browsers would send our own form with Origin: null.
		h.Set("Referrer-Policy", "same-origin")
		if !announced.AtIssuer(s.issuer, r.Host) {
			s.page(w, http.StatusMisdirectedRequest, "Not here", fmt.Sprintf("This is %s, and not %q.", s.issuer, r.Host))
			return
		}
		mux.ServeHTTP(w, r)
	}), maxBody)
}

// page shows an error page.
func (s *issuerServer) page(w http.ResponseWriter, status int, title, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := s.pages.ExecuteTemplate(w, "error.html", struct{ ErrType, ErrMsg string }{title, text}); err != nil {
		s.log.Debug("page not sent", "error", err)
	}
}

// discovery returns the document at /.well-known/openid-configuration (OpenID Connect Discovery 1.0
// section 3). It replaces Dex's document, which names endpoints that are not served and a challenge
// method that is refused.
func discovery(issuer, algorithm string) []byte {
	b, err := json.MarshalIndent(map[string]any{
		"issuer":                                issuer,
		"authorization_endpoint":                issuer + "/auth",
		"token_endpoint":                        issuer + "/token",
		"jwks_uri":                              issuer + "/keys",
		"userinfo_endpoint":                     issuer + "/userinfo",
		"end_session_endpoint":                  issuer + "/logout",
		"response_types_supported":              []string{"code"},
		"grant_types_supported":                 []string{"authorization_code", "refresh_token"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{algorithm},
		"code_challenge_methods_supported":      []string{"S256"},
		"scopes_supported":                      scopes,
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post", "none"},
		"claims_supported": []string{"iss", "sub", "aud", "iat", "exp", "email", "email_verified",
			"groups", "locale", "name", "preferred_username", "at_hash"},
	}, "", "  ")
	if err != nil {
		panic(err) // strings
	}
	return b
}

// back redirects a browser to the service with an error (RFC 6749 section 4.1.2.1).
func back(w http.ResponseWriter, r *http.Request, redirectURI, state, code, text string) {
	u, err := url.Parse(redirectURI)
	if err != nil {
		panic(err) // it is registered
	}
	q := u.Query()
	q.Set("error", code)
	q.Set("error_description", text)
	q.Set("state", state)
	u.RawQuery = q.Encode()
	http.Redirect(w, r, u.String(), http.StatusSeeOther)
}
