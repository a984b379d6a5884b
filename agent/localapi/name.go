package localapi

import (
	"net/http"
	"strings"

	"github.com/florete/florete/internal/httpreply"
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
		if status, err := httpreply.OwnPage(r, func(name string) bool { return names[name] }, "the name of this service"); err != nil {
			http.Error(w, err.Error(), status)
			return
		}
		next.ServeHTTP(w, r)
	})
}
