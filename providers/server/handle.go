package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

// routes are the endpoints of the kind.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	name := s.Kind.name
	if e, ok := s.Kind.kind.(Enroller); ok {
		mux.HandleFunc("POST /"+name+"/nonce", func(w http.ResponseWriter, r *http.Request) { s.nonce(w, r, e) })
	}
	if s.Kind.answers {
		mux.HandleFunc("POST "+hostapi.Path(name), s.post)
	}
	if rd, ok := s.Kind.kind.(Reader); ok {
		mux.HandleFunc("GET /"+name+"/artifact/{node}", func(w http.ResponseWriter, r *http.Request) { s.get(w, r, rd) })
	}
	if wk, ok := s.Kind.kind.(Watcher); ok {
		mux.HandleFunc("GET /"+name+"/watch", func(w http.ResponseWriter, r *http.Request) { s.watch(w, r, wk) })
	}
	if j, ok := s.Kind.kind.(Joiner); ok {
		mux.HandleFunc("POST /"+name+"/join", func(w http.ResponseWriter, r *http.Request) { s.join(w, r, j) })
	}
	if rc, ok := s.Kind.kind.(Receiver); ok {
		mux.HandleFunc("POST /"+name+"/report", func(w http.ResponseWriter, r *http.Request) { s.report(w, r, rc) })
	}
	if p, ok := s.Kind.kind.(Public); ok {
		path, h := p.Open()
		mux.Handle("GET /"+name+"/"+path, h)
	}
	if l, ok := s.Kind.kind.(Lister); ok {
		mux.HandleFunc("GET "+hostapi.PathCRL(name), func(w http.ResponseWriter, r *http.Request) { s.crl(w, r, l) })
	}
	if s.Log != nil {
		mux.HandleFunc("GET "+hostapi.PathCheckpoint(name), s.checkpoint)
	}
	// That an answer comes, and its date, is all there is to it.
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, struct{}{}) })
	mux.HandleFunc("/", s.unknown)
	return mux
}

// unknown refuses a request for which there is no endpoint.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	a := request{Server: s, row: Row{From: r.RemoteAddr}}
	_ = a.identify(r.Context(), r.TLS, true) // whoever it is
	a.reply(w, r, func() (any, change, error) {
		return nil, change{}, hostapi.Errorf(hostapi.CodeUnknownMethod, "%s %q: no such endpoint, want one of kind %q: other kinds have addresses of their own in the manifest", r.Method, r.URL.Path, s.Kind.name)
	})
}

// nonce returns a nonce to any caller.
func (s *Server) nonce(w http.ResponseWriter, r *http.Request, k Enroller) {
	now := time.Now()
	s.Audit.count(r.RemoteAddr, CodeNonce, now)
	write(w, http.StatusOK, hostapi.Nonce{Nonce: k.Nonce(now)})
}

// post answers a request for a need. The caller is authenticated before the body is read.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	a := request{Server: s, row: Row{From: r.RemoteAddr, Kind: s.Kind.name}}
	enroller, _ := s.Kind.kind.(Enroller)
	err := a.identify(r.Context(), r.TLS, enroller != nil)
	if err == nil {
		if a.svid != nil {
			conns.Vouch(r.Context())
		}
		err = a.receive(http.MaxBytesReader(w, r.Body, hostapi.MaxRequest), r.Header)
	}
	a.reply(w, r, func() (any, change, error) {
		if err != nil {
			return nil, change{}, err
		}
		return a.answer(r.Context(), enroller)
	})
}

// get answers a node that reads its documents.
func (s *Server) get(w http.ResponseWriter, r *http.Request, k Reader) {
	a := request{Server: s, row: Row{From: r.RemoteAddr, Kind: s.Kind.name}}
	err := a.receiveRead(r)
	if revision := s.revisions.now(); revision > 0 { // before they are looked at
		w.Header().Set(hostapi.HeaderRevision, strconv.FormatInt(revision, 10))
	}
	a.reply(w, r, func() (any, change, error) {
		if err != nil {
			return nil, change{}, err
		}
		return a.read(r.Context(), k, r.PathValue("node"), r.Header.Get(hostapi.HeaderHas))
	})
}

// reply writes what was decided. Whoever reads slowly holds none of the slots.
func (a *request) reply(w http.ResponseWriter, r *http.Request, decide func() (any, change, error)) {
	answer, err := a.withSlot(r.Context(), func() (any, change, error) {
		answer, c, err := decide()
		return answer, c, newerFormat(err, r.Header.Get(document.HeaderFormat))
	})
	if err == nil && a.row.Enrolment {
		peerOf(r.Context()).enrol(answer)
	}
	reply(w, answer, err)
}

// newerFormat is a refusal of what cannot be read, or transient where the host is of a newer
// release: then it is this provider that is to be upgraded.
func newerFormat(err error, announced string) error {
	var e *hostapi.Error
	f, unreadable := document.ParseFormat(announced)
	if unreadable != nil || !f.Newer(document.NewestFormat) || !errors.As(err, &e) || e.Kind != hostapi.Invalid {
		return err
	}
	return hostapi.Errorf(hostapi.CodeNewerFormat, "%s: the host understands formats up to %s, this provider up to %s: upgrade the provider's programs",
		e.Message, f, document.NewestFormat)
}

// slotPatience is how long a request waits for a slot: the hosts of a large cluster that
// come at once are served one after the other, none for nothing.
const slotPatience = 15 * time.Second

// withSlot decides in one of the server's slots, of which one caller has its share alone.
func (a *request) withSlot(ctx context.Context, decide func() (any, change, error)) (any, error) {
	busy := func(n int, of string) error {
		return hostapi.Errorf(hostapi.CodeBusy, "%d requests%s are being decided: request again later", n, of).After(time.Second)
	}
	free, ok := a.callers.Acquire(a.who())
	if !ok {
		return nil, busy(a.callers.Max(), " of yours")
	}
	defer free()
	patience := time.NewTimer(slotPatience)
	defer patience.Stop()
	select {
	case a.slots <- struct{}{}: // in the order in which they came
		defer func() { <-a.slots }()
		defer a.done()
		return a.commitDecision(ctx, decide)
	case <-patience.C:
		return nil, busy(cap(a.slots), "")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// who is the caller: a node, or where nothing but a proof names one, that of an
// address.
func (a *request) who() string {
	if a.svid != nil {
		return a.caller.String()
	}
	return conns.Prefix(a.row.From).String()
}

// reply writes an answer or, when err is not nil, a refusal.
func reply(w http.ResponseWriter, answer any, err error) {
	if err == nil {
		switch v := answer.(type) {
		case notModified:
			w.Header().Set(hostapi.HeaderTag, string(v))
			w.WriteHeader(http.StatusNotModified)
			return
		case hostapi.Artifact:
			if !v.Unchanged() {
				w.Header().Set(hostapi.HeaderTag, v.Tag())
			}
		}
		write(w, http.StatusOK, answer)
		return
	}
	e := hostapi.AsError(err)
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(e.RetryAfter))
	}
	write(w, e.Status(), e)
}

func write(w http.ResponseWriter, status int, v any) {
	b, ok := v.(encoded)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			panic(err) // strings and integers
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(document.HeaderFormat, document.NewestFormat.String())
	w.WriteHeader(status)
	w.Write(b) // without it the caller repeats the request
}
