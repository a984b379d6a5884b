package localapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/florete/florete/agent/forward/announce"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
)

// end serves a request to end a session. The access log names the caller, whom the forwarder
// states in the headers of the request.
func (h *handler) end(w http.ResponseWriter, r *http.Request) {
	doc, ok := h.read(w)
	if !ok {
		return
	}
	if err := h.statesCallers(doc.Manifest()); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	by, err := announce.CallerOf(r.Header)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	id := r.URL.Query().Get("session")
	switch err := status.EndSession(r.Context(), status.Beside(h.Agent, "session"), id, by.String()); {
	case errors.Is(err, status.ErrNoSession):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		fmt.Fprintf(w, "session %s: ended\n", id)
	}
}

// statesCallers returns an error unless the forwarder writes the headers that state the caller at
// every service that publishes the socket. At another one, a caller could write any name there.
func (h *handler) statesCallers(m document.Manifest) error {
	published := false
	for _, p := range m.Forwarder.Publish {
		if p.Upstream != "unix:"+h.AdminSocket {
			continue
		}
		published = true
		if p.Identity != document.HTTPHeaders {
			return fmt.Errorf("%s does not state who ends a session: write services.%s.identity = \"http\"; in the topology", p.ID.Short(), p.ID.Name())
		}
	}
	if !published {
		return fmt.Errorf("no service publishes %s", h.AdminSocket)
	}
	return nil
}
