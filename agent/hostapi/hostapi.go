// Package hostapi is what a host says of itself to those whom a role lets in: HTTP
// on a Unix socket, which is published through the forwarder where the flake says
// so, and nowhere else.
//
//	GET  /manifest            the manifest in force, its exact bytes
//	GET  /status              as flor status --json
//	GET  /journal/UNIT?lines=N  the last lines of a unit's journal
//	POST /rotate?need=ID      activation asks for the need again, within a minute
//
// It reads the journals of Florete's units, of services that this host publishes
// and of units that its needs tell, and no others. Who may connect is the
// forwarder's to decide; all who may, may do all of it.
package hostapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"florete"
	"florete/agent/status"
)

// Config says which host answers.
type Config struct {
	Layout florete.Layout
	Agent  string // its Unix socket
	Rotate string // directory for what activation is asked, one file for a need

	// Journal is the program that reads journals; empty for journalctl.
	Journal string
}

// Limits of one answer from a journal.
const (
	defaultLines = 200
	maxLines     = 10_000
	maxBytes     = 16 << 20
	maxJournals  = 4 // at once
	timeout      = time.Minute
)

// Serve answers on ln until ctx ends.
func Serve(ctx context.Context, ln net.Listener, c Config) error {
	s := &http.Server{Handler: Handler(c), ReadTimeout: timeout, WriteTimeout: timeout, MaxHeaderBytes: 16 << 10}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		s.Close()
	})
	err := s.Serve(ln)
	if !stop() {
		<-closed
		return nil
	}
	return err
}

// Handler answers. It refuses what a page of another origin asks in a browser.
func Handler(c Config) http.Handler {
	if c.Journal == "" {
		c.Journal = "journalctl"
	}
	h := &handler{c, make(chan struct{}, maxJournals)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /manifest", h.manifest)
	mux.HandleFunc("GET /status", h.status)
	mux.HandleFunc("GET /journal/{unit}", h.journal)
	mux.HandleFunc("POST /rotate", h.rotate)
	return http.NewCrossOriginProtection().Handler(mux)
}

type handler struct {
	Config
	journals chan struct{}
}

// read opens the manifest in force; an error is answered.
func (h *handler) read(w http.ResponseWriter) (florete.Document, florete.Manifest, bool) {
	doc, err := florete.Read(florete.Current(h.Layout.Documents()), florete.DocManifest)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return doc, florete.Manifest{}, false
	}
	m, err := doc.Manifest()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
	return doc, m, err == nil
}

func (h *handler) manifest(w http.ResponseWriter, _ *http.Request) {
	if doc, _, ok := h.read(w); ok {
		_, body, _ := doc.Bytes()
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}
}

func (h *handler) status(w http.ResponseWriter, r *http.Request) {
	_, raw, err := status.Fetch(r.Context(), h.Agent)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(raw)
}

// journal streams the last lines of a unit.
func (h *handler) journal(w http.ResponseWriter, r *http.Request) {
	_, m, ok := h.read(w)
	if !ok {
		return
	}
	unit := strings.TrimSuffix(r.PathValue("unit"), ".service")
	if known := units(m); !slices.Contains(known, unit) {
		http.Error(w, fmt.Sprintf("unit %q: want one of %s", unit, strings.Join(known, ", ")), http.StatusNotFound)
		return
	}
	lines := defaultLines
	if text := r.URL.Query().Get("lines"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLines {
			http.Error(w, fmt.Sprintf("lines %q: want 1 to %d", text, maxLines), http.StatusBadRequest)
			return
		}
		lines = n
	}
	select {
	case h.journals <- struct{}{}:
		defer func() { <-h.journals }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "others read journals: try again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := &limited{w, maxBytes}
	switch err := tail(r.Context(), out, h.Journal, unit+".service", lines); {
	case err != nil && out.left == maxBytes:
		http.Error(w, "journal: "+err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		panic(http.ErrAbortHandler) // so that nobody takes what is cut for all
	}
}

// units are those whose journals may be read, without ".service".
func units(m florete.Manifest) []string {
	names := []string{"florete-activate", "florete-agent", "florete-host", "florete-provider"}
	for _, p := range m.Forwarder.Publish {
		names = append(names, p.ID.Name())
	}
	for _, n := range m.Needs {
		for _, a := range n.OnChange {
			if name, ok := strings.CutSuffix(a.Unit, ".service"); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
