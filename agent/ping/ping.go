// Package ping checks step by step whether an account of this host can reach a service: the
// service's name, its local listener, the identity of the account, the forwarder that publishes the
// service, both identities, and the upstream. A failed step includes a remedy. Later steps run if
// they do not depend on it.
//
// The forwarder performs the steps, as for a connection of that account, on a Unix socket beside
// that of the status: POST /ping?service=wiki. The service sees a connection that is closed in
// order without a byte. Nothing is sent to a service over UDP.
package ping

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/httpreply"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixsock"
)

// Timeout bounds all steps together. It exceeds the time that a connection may take.
const Timeout = 35 * time.Second

// Names of the steps, in order.
const (
	Name     = "name"
	Listener = "listener"
	Caller   = "caller"
	Dial     = "dial"
	Identity = "identity"
	Upstream = "upstream"
)

// Steps lists all steps in order.
var Steps = []string{Name, Listener, Caller, Dial, Identity, Upstream}

// Result is the result of a ping.
type Result struct {
	Service string `json:"service"` // name as given by the user
	ID      string `json:"id"`      // empty if there is no such service
	Host    string `json:"name"`    // name for programs
	Listen  string `json:"listen"`
	Steps   []Step `json:"steps"` // all steps, in order, if the service has an ID
}

// Step is the result of one step.
type Step struct {
	Name        string `json:"step"`
	Detail      string `json:"detail,omitempty"`
	Nanoseconds int64  `json:"nanoseconds"`
	Error       string `json:"error,omitempty"`
	Remedy      string `json:"remedy,omitempty"` // remedy for the error
	Needs       string `json:"needs,omitempty"`  // failed step without which this one could not be done
}

// Broken returns the first step that failed, and whether there is one.
func (r Result) Broken() (Step, bool) {
	i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Error != "" })
	if i < 0 {
		return Step{}, false
	}
	return r.Steps[i], true
}

// Beside returns the path of the ping socket beside the status socket.
func Beside(socket string) string { return status.Beside(socket, "ping") }

// Serve answers requests on ln, a listener from unixsock.Limits.Listen, until ctx ends, and removes
// the socket. named reports whether the policy names an account; named accounts may use most of the
// connections.
func Serve(ctx context.Context, ln net.Listener, named func(uid uint32) bool, do func(ctx context.Context, uid uint32, service string) Result) {
	mux := http.NewServeMux()
	// Only requests for this host name are served, as for the status.
	mux.HandleFunc("POST agent/ping", func(w http.ResponseWriter, r *http.Request) {
		httpreply.JSON(w, http.StatusOK, do(r.Context(), unixsock.UID(r), r.URL.Query().Get("service")))
	})
	unixsock.Serve(ctx, ln, Timeout, named, mux)
}

// Config configures Run.
type Config struct {
	Socket string // status socket of the forwarder
	// Lookup returns the addresses of a name; default that of package net.
	Lookup func(ctx context.Context, name string) ([]string, error)
}

// Run performs a ping. It returns an error if the ping could not be performed.
func Run(ctx context.Context, c Config, service string) (Result, error) {
	if c.Lookup == nil {
		c.Lookup = net.DefaultResolver.LookupHost
	}
	r, err := fetch(ctx, c.Socket, service)
	if err != nil || r.ID == "" {
		return r, err
	}
	begun := time.Now()
	found, err := c.Lookup(ctx, r.Host)
	listener, _, _ := net.SplitHostPort(r.Listen)
	step := &r.Steps[0]
	step.Nanoseconds += int64(time.Since(begun))
	switch {
	case err != nil:
		step.Error, step.Remedy = err.Error(), fmt.Sprintf("as root: flor hosts-file; programs also reach it at %s, and over SOCKS", r.Listen)
	case !slices.Contains(found, listener):
		step.Error, step.Remedy = fmt.Sprintf("%s leads to %v, want %s", r.Host, found, listener), "as root: flor hosts-file; and look for another entry in /etc/hosts"
	}
	return r, nil
}

func fetch(ctx context.Context, socket, service string) (r Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	transport := unixsock.Client(socket)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent/ping?"+url.Values{"service": {service}}.Encode(), nil)
	if err != nil {
		return r, err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return r, fmt.Errorf("agent at %s: %w: is flor agent run running?", socket, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return r, fmt.Errorf("agent at %s: %s", socket, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
		return r, fmt.Errorf("agent at %s: %w", socket, err)
	}
	return r, nil
}

// Find returns the service with a name as people write it: wiki, host.ursula, or the full name.
func Find(name, trustDomain string) (spiffe.Dialable, error) {
	d, err := spiffe.Resolve(name, trustDomain)
	if err != nil {
		if short, e := spiffe.Resolve(name+"."+trustDomain+spiffe.Suffix, trustDomain); e == nil {
			return short, nil
		}
	}
	return d, err
}
