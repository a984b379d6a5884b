package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

// routes are all endpoints.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, handle := range s.Kind.Routes(s) {
		mux.HandleFunc(pattern, handle)
	}
	if s.Log != nil {
		mux.HandleFunc("GET "+hostapi.PathCheckpoint(s.Kind.Name), s.checkpoint)
	}
	// That an answer comes, and its date, is all there is to it.
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { Reply(w, struct{}{}, nil) })
	mux.HandleFunc("/", s.unknown)
	return mux
}

// unknown refuses a request for which there is no endpoint.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	a := s.Request(r)
	a.Row.Kind = ""
	_ = a.Identify(r, true) // whoever it is
	a.Reply(w, r, hostapi.Errorf(hostapi.CodeUnknownMethod, "%s %q: no such endpoint, want one of kind %q: other kinds have addresses of their own in the manifest", r.Method, r.URL.Path, s.Kind.Name), nil)
}

// nonce returns a nonce to any caller.
func (s *Server) nonce(w http.ResponseWriter, r *http.Request, k Enroller) {
	now := time.Now()
	s.Audit.count(r.RemoteAddr, CodeNonce, now)
	Reply(w, hostapi.Nonce{Nonce: k.Nonce(now)}, nil)
}

// post answers a request for a need. The caller is authenticated before the body is read.
func (s *Server) post(w http.ResponseWriter, r *http.Request, enroller Enroller) {
	a := s.Request(r)
	err := a.Identify(r, enroller != nil)
	if err == nil {
		err = a.receive(http.MaxBytesReader(w, r.Body, hostapi.MaxRequest), r.Header)
	}
	a.Reply(w, r, err, func() (any, Change, error) { return a.answer(r.Context(), enroller) })
}

// Reply writes what is decided: refused where that is an error. A caller that reads slowly holds
// none of the slots.
func (a *Request) Reply(w http.ResponseWriter, r *http.Request, refused error, decide func() (any, Change, error)) {
	answer, err := a.Decide(r.Context(), refused, decide)
	if err == nil && a.Row.Enrolment {
		peerOf(r.Context()).enrol(answer)
	}
	Reply(w, answer, err)
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

// Decide decides in one of the server's slots, of which one caller has its share alone, and commits
// the decision with its audit row. A request of which refused says already why is refused with that.
func (a *Request) Decide(ctx context.Context, refused error, decide func() (any, Change, error)) (any, error) {
	busy := func(n int, of string) error {
		return hostapi.Errorf(hostapi.CodeBusy, "%d requests%s are being decided: request again later", n, of).After(time.Second)
	}
	free, ok := a.callers.Acquire(a.Who())
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
		return a.commitDecision(ctx, func() (answer any, c Change, err error) {
			if err = refused; err == nil {
				answer, c, err = decide()
			}
			return answer, c, newerFormat(err, a.format)
		})
	case <-patience.C:
		return nil, busy(cap(a.slots), "")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Who returns whose share of what the server has a request takes: its node's or, where nothing but
// a proof names one, its network's.
func (a *Request) Who() string {
	if a.svid != nil {
		return a.Caller.String()
	}
	return conns.Prefix(a.Row.From).String()
}

// Reply writes an answer or, when err is not nil, a refusal.
func Reply(w http.ResponseWriter, answer any, err error) {
	if err == nil {
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
