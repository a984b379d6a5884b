package binarycache

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
)

// patience is the longest time that the transfer of a path's contents may take.
const patience = 6 * time.Hour

// info is the answer to GET /nix-cache-info. Its priority is 30, so that clients call this cache
// before cache.nixos.org, whose priority is 40.
const info = "StoreDir: /nix/store\nWantMassQuery: 1\nPriority: 30\n"

// call is one request to the cache.
type call struct {
	*cache
	w      http.ResponseWriter
	r      *http.Request
	policy document.Policy
	caller spiffe.ID
	access document.Access
	row    server.Row // audit row of an upload or a refusal
}

// missing is the error of a request for a path or contents that the caller cannot find.
type missing struct{ error }

// endpoint is an HTTP method and path, the handler for them, and the access that a caller needs.
type endpoint struct {
	pattern string
	access  document.Access
	answer  func(*call) error
}

var endpoints = []endpoint{
	{"GET /nix-cache-info", document.AccessRead, (*call).info},
	{"GET /{info}", document.AccessRead, (*call).getInfo},
	{"PUT /{info}", document.AccessWrite, (*call).putInfo},
	{"GET /nar/{hash}/{file}", document.AccessRead, (*call).getContents},
	{"GET /nar/{file}", document.AccessWrite, (*call).findContents},
	{"PUT /nar/{file}", document.AccessWrite, (*call).putContents},
	{"GET /", document.AccessRead, (*call).nothing},
	{"/", document.AccessRead, (*call).unknown},
}

func (c *cache) routes() http.Handler {
	mux := http.NewServeMux()
	for _, e := range endpoints {
		mux.HandleFunc(e.pattern, func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, e) })
	}
	return mux
}

// serve answers a request, or refuses it and records the refusal in the audit log.
func (c *cache) serve(w http.ResponseWriter, r *http.Request, e endpoint) {
	// Replace the deadline that the connection's last request left.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(announced.Stall))
	caller := announced.From(r.Context()).ID
	q := &call{cache: c, w: announced.Answer(w, patience), r: r, policy: c.Policies.Newest(), caller: caller, row: c.refusals.Row(r)}
	q.access = q.policy.Cache.Access(caller, time.Now())
	err := q.decide(e)
	var none missing
	switch {
	case err == nil:
		return
	case errors.As(err, &none):
		q.text(http.StatusNotFound, err.Error())
		return
	}
	refusal := c.refusals.Refuse(w, r, q.row, err)
	q.text(refusal.Status(), refusal.Message)
}

func (c *call) decide(e endpoint) error {
	if err := announced.Access(c.r, spiffe.CacheGroup, c.access, e.access); err != nil {
		return err
	}
	return e.answer(c)
}

// text answers with a line of text. Nix shows the line to its user.
func (c *call) text(status int, text string) {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.Header().Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(status)
	fmt.Fprintln(c.w, text) // without a body, Nix repeats the request
}

func (c *call) info() error {
	c.w.Header().Set("Content-Type", "text/x-nix-cache-info")
	fmt.Fprint(c.w, info)
	return nil
}

// nothing answers requests for build logs and lists of files, which this cache does not have.
func (c *call) nothing() error {
	return missing{fmt.Errorf("%.100q: this cache has store paths alone", c.r.URL.Path)}
}

func (c *call) unknown() error {
	return hostapi.Errorf(hostapi.CodeUnknownMethod, "%s %.100q: this cache accepts store paths alone: leave write-nar-listing and index-debug-info out",
		c.r.Method, c.r.URL.Path)
}
