// Package localapi serves an API with which an operator reads the state of one host, and makes the
// host fetch secrets again. The API is HTTP on two Unix sockets. The forwarder publishes the
// sockets only if the flake declares them. The socket for reading serves:
//
//	GET /manifest                        the manifest in force, its exact bytes
//	GET /status                          the output of flor status --json
//	GET /journal/UNIT?lines=N[&follow=1]  the last lines of a unit's journal, and
//	                                     new lines as they are written
//
// The socket for administration serves:
//
//	POST /refetch?need=ID  activation requests the need again within ten seconds
//	POST /rotate?need=ID   activation requests a new secret; the old one stops working
//	POST /end?session=ID   the forwarder ends a session over SSH, RDP or VNC; the access
//	                       log names the caller
//
// A caller can read the journals of Florete's units, of services that this host publishes, and of
// units that its needs notify. The forwarder checks the roles of the callers. Each socket is its
// own service, so that a role can grant only one of them. A request must name the service by its
// usual name, for example host.ursula.demo.flor.rete.
package localapi

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/httpreply"
)

// Config describes the host whose API is served.
type Config struct {
	Instance hostdir.Instance
	Layout   hostdir.Layout
	Agent    string // status socket of the forwarder
	Refetch  string // directory in which requests to activation are left, see hostdir.Instance.Refetch

	// AdminSocket is the path of the socket for administration.
	AdminSocket string

	// Journal is the program that reads journals. The default is journalctl.
	Journal string
}

// timeout is the time limit of a request and of its response. A response that is streamed has this
// limit for each part.
const timeout = time.Minute

// Serve serves a handler of the API on ln until ctx ends.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadTimeout: timeout, WriteTimeout: timeout, MaxHeaderBytes: 16 << 10}
	return conns.Serve(ctx, s, conns.Patient(ln, nil))
}

// ReadHandler returns the handler for the socket for reading.
func ReadHandler(c Config) http.Handler {
	c.Journal = cmp.Or(c.Journal, "journalctl")
	h := &handler{Config: c, journals: newJournals()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /manifest", h.manifest)
	mux.HandleFunc("GET /status", h.status)
	mux.HandleFunc("GET /journal/{unit}", h.journal)
	return h.named(mux)
}

// AdminHandler returns the handler for the socket for administration.
func AdminHandler(c Config) http.Handler {
	h := &handler{Config: c}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /refetch", h.act(Refetch, Again))
	mux.HandleFunc("POST /rotate", h.act(Rotate, AnotherSecret))
	mux.HandleFunc("POST /end", h.end)
	next := h.named(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The forwarder decides when a connection begins whether it states the caller in its
		// headers. A connection therefore must not outlive a change of that.
		w.Header().Set("Connection", "close")
		next.ServeHTTP(w, r)
	})
}

type handler struct {
	Config
	document atomic.Pointer[document.Document] // the manifest that was read last
	journals
}

// read loads the manifest in force for a request. If it fails, it sends the error to the caller and
// returns false.
func (h *handler) read(w http.ResponseWriter) (document.Document, bool) {
	var before document.Document
	if d := h.document.Load(); d != nil {
		before = *d
	}
	doc, err := h.Layout.Refresh(before)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return doc, false
	}
	h.document.Store(&doc)
	return doc, true
}

func (h *handler) manifest(w http.ResponseWriter, _ *http.Request) {
	if doc, ok := h.read(w); ok {
		_, body, _ := doc.Bytes()
		httpreply.Encoded(w, http.StatusOK, body)
	}
}

func (h *handler) status(w http.ResponseWriter, r *http.Request) {
	_, raw, err := status.Fetch(r.Context(), h.Agent)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	httpreply.Encoded(w, http.StatusOK, raw)
}
