package oidc

import (
	"net/http"
	"net/url"
)

// crossOrigin lets the web pages of public clients read responses of the issuer. Other clients read
// these responses on servers. Requests are allowed without cookies, from the origins of a public
// client's callbacks.
func (s *issuerServer) crossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" && s.policy().origins()[origin] {
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
		}
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// origins returns the origins of the callbacks of public clients.
func (p *Policy) origins() map[string]bool {
	all := map[string]bool{}
	if p == nil {
		return all
	}
	for _, c := range p.clients {
		for _, uri := range c.RedirectURIs {
			if u, err := url.Parse(uri); err == nil && c.Public {
				all[u.Scheme+"://"+u.Host] = true
			}
		}
	}
	return all
}
