// Package localapi is the API of one host for callers with the required roles. It is HTTP on Unix
// sockets, which are published only through the forwarder and only if the flake declares it. The
// socket for reading serves:
//
//	GET /manifest                        the manifest in force, its exact bytes
//	GET /status                          the output of flor status --json
//	GET /journal/UNIT?lines=N[&follow=1]  the last lines of a unit's journal, and
//	                                     new lines as they are written
//
// and the socket for administration:
//
//	POST /refetch?need=ID  activation requests the need again within ten seconds
//	POST /rotate?need=ID   activation requests a new secret; the old one stops working
//
// It serves the journals of Florete's units, of services that this host publishes, and of units
// that its needs notify, and no others. The forwarder decides who may connect. The sockets are
// separate services, so that a role can grant only one of them. Requests must name the service as
// its callers do, host.ursula.demo.flor.rete.
package localapi

import (
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

// Config identifies the host.
type Config struct {
	Instance hostdir.Instance
	Layout   hostdir.Layout
	Agent    string // status socket of the forwarder
	Refetch  string // directory of requests to activation, see hostdir.Instance.Refetch

	// Journal is the program that reads journals; default journalctl.
	Journal string
}

// timeout bounds a request, and an answer or each part of it.
const timeout = time.Minute

// Serve serves on ln until ctx ends.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadTimeout: timeout, WriteTimeout: timeout, MaxHeaderBytes: 16 << 10}
	return conns.Serve(ctx, s, conns.Patient(ln, nil))
}

// ReadHandler returns the handler for reading.
func ReadHandler(c Config) http.Handler {
	if c.Journal == "" {
		c.Journal = "journalctl"
	}
	h := &handler{Config: c, journals: newJournals()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /manifest", h.manifest)
	mux.HandleFunc("GET /status", h.status)
	mux.HandleFunc("GET /journal/{unit}", h.journal)
	return h.named(mux)
}

// AdminHandler returns the handler for administration.
func AdminHandler(c Config) http.Handler {
	h := &handler{Config: c}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /refetch", h.act(Refetch, Again))
	mux.HandleFunc("POST /rotate", h.act(Rotate, AnotherSecret))
	return h.named(mux)
}

type handler struct {
	Config
	document atomic.Pointer[document.Document] // last manifest read
	journals
}

// read opens the manifest in force. It sends errors to the caller.
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
