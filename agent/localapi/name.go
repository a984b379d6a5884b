package localapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// named answers requests to the names of services that this host publishes from Unix
// sockets, and no others: a page in a caller's browser may have its own name lead to the
// local listener (DNS rebinding), and is then of the same origin. A request of a page of
// another name is refused too.
func (h *handler) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		doc, ok := h.read(w)
		if !ok {
			return
		}
		names := map[string]bool{}
		for _, p := range doc.Manifest().Forwarder.Publish {
			if d, err := spiffe.Dial(p.ID); err == nil && strings.HasPrefix(p.Upstream, "unix:") {
				names[spiffe.Render(d)] = true
			}
		}
		if !names[hostname(r.Host)] {
			http.Error(w, fmt.Sprintf("host %q: want the name of this service", r.Host), http.StatusMisdirectedRequest)
			return
		}
		for _, origin := range r.Header.Values("Origin") {
			if u, err := url.Parse(origin); err != nil || !names[hostname(u.Host)] {
				http.Error(w, fmt.Sprintf("origin %q: want the name of this service", origin), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// hostname is an authority without its port, as names are written.
func hostname(authority string) string {
	u := url.URL{Host: authority}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}
