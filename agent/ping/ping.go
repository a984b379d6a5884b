// Package ping finds out why an account of this host cannot reach a service. It checks the
// connection step by step: the name of the service, its local listener, the identity of the
// account, the forwarder that publishes the service, the identities at both ends, and the upstream.
// A failed step includes a remedy. Later steps run if they do not depend on the failed one.
//
// The forwarder performs the steps as it would for a connection of the account. It serves them on a
// Unix socket beside the status socket: POST /ping?service=wiki. A service over TCP sees a
// connection that is closed without a byte. A service over UDP receives nothing.
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

// Timeout is the time limit of all steps of a ping together. It is longer than the time limit of a
// single connection through the forwarder.
const Timeout = 35 * time.Second

// These constants are the names of the steps, in the order in which they run.
const (
	Name     = "name"
	Listener = "listener"
	Caller   = "caller"
	Dial     = "dial"
	Identity = "identity"
	Upstream = "upstream"
)

// Steps lists the names of all steps in the order in which they run.
var Steps = []string{Name, Listener, Caller, Dial, Identity, Upstream}

// Result contains the steps of a ping, which is a test connection to a service, and says for each
// step whether it succeeded. It is the JSON output of flor ping --json.
type Result struct {
	Service string `json:"service"` // name that the user gave
	ID      string `json:"id"`      // SPIFFE ID, empty if there is no such service
	Host    string `json:"name"`    // host name by which programs connect
	Listen  string `json:"listen"`
	Steps   []Step `json:"steps"` // all steps in order, if the service has an ID
}

// Step is the result of one step of a ping.
type Step struct {
	Name        string `json:"step"`
	Detail      string `json:"detail,omitempty"`
	Nanoseconds int64  `json:"nanoseconds"`
	Error       string `json:"error,omitempty"`
	Remedy      string `json:"remedy,omitempty"` // remedy for the error
	Needs       string `json:"needs,omitempty"`  // name of the failed step without which this one could not run
}

// Broken returns the first step of a ping that failed. It returns false if all steps succeeded.
func (r Result) Broken() (Step, bool) {
	i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Error != "" })
	if i < 0 {
		return Step{}, false
	}
	return r.Steps[i], true
}

// Beside returns the path of the forwarder's ping socket, which is in the same directory as the
// given status socket.
func Beside(socket string) string { return status.Beside(socket, "ping") }

// Serve answers ping requests on the Unix socket listener ln until ctx ends, and then removes the
// socket. For each request, it calls the function do, and passes it the uid of the caller and the
// name of the service. Most connections are reserved for accounts for which named returns true.
func Serve(ctx context.Context, ln net.Listener, named func(uid uint32) bool, do func(ctx context.Context, uid uint32, service string) Result) {
	mux := http.NewServeMux()
	// Only requests for this host name are served, as on the status socket.
	mux.HandleFunc("POST agent/ping", func(w http.ResponseWriter, r *http.Request) {
		httpreply.JSON(w, http.StatusOK, do(r.Context(), unixsock.UID(r), r.URL.Query().Get("service")))
	})
	unixsock.Serve(ctx, ln, Timeout, named, mux)
}

// Config configures a ping that Run performs.
type Config struct {
	Socket string // path of the forwarder's status socket
	// Lookup returns the addresses of a name. The default is the lookup of package net.
	Lookup func(ctx context.Context, name string) ([]string, error)
}

// Run asks the forwarder to ping a service, and checks on this side that the service's host name is
// known. A failed step is part of the result and not an error. Run returns an error only if the
// forwarder cannot be asked.
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

// Find returns the service with the given name in a trust domain. The name is short, such as wiki
// or host.ursula, or complete.
func Find(name, trustDomain string) (spiffe.Dialable, error) {
	d, err := spiffe.Resolve(name, trustDomain)
	if err != nil {
		if short, e := spiffe.Resolve(name+"."+trustDomain+spiffe.Suffix, trustDomain); e == nil {
			return short, nil
		}
	}
	return d, err
}
