package localapi

import (
	"net/http"
	"strings"

	"github.com/florete/florete/internal/httpreply"
	"github.com/florete/florete/internal/spiffe"
)

// named protects a handler from web pages in a browser on the caller's machine. A web page could
// point its own name to the local listener (DNS rebinding), and the browser would then let it read
// the responses. named therefore accepts a request only if the request names a service that this
// host publishes from a Unix socket. It also refuses cross-origin requests.
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
