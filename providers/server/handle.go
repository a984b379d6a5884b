package server

import (
	"net/http"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostapi"
)

// routes returns the handler of all endpoints.
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
	conns.KeepTurn(r.Context()) // for the request with the proof
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
