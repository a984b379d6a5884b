package status

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/httpreply"
	"github.com/florete/florete/internal/unixsock"
)

// timeout bounds a request on either side.
const timeout = 5 * time.Second

// Beside returns the path of another socket beside the status socket, with word in its name.
func Beside(socket, word string) string {
	return strings.TrimSuffix(strings.TrimSuffix(socket, ".sock"), "status") + word + ".sock"
}

// Listen listens on a Unix socket with this mode. It replaces a socket whose owner is gone, and
// fails if another forwarder answers on it.
func Listen(socket string, mode fs.FileMode) (*net.UnixListener, error) {
	if c, err := net.Dial("unix", socket); err == nil {
		c.Close()
		return nil, fmt.Errorf("socket %s: another agent serves it", socket)
	}
	return unixsock.Listen(socket, "unix", mode)
}

// Serve answers requests on ln until ctx ends, and removes the socket.
func Serve(ctx context.Context, ln net.Listener, report func() Report) {
	mux := http.NewServeMux()
	// Only requests for this host name are served. If the socket is published by mistake, a web
	// page cannot use it.
	mux.HandleFunc("GET agent/status", func(w http.ResponseWriter, _ *http.Request) {
		httpreply.JSON(w, http.StatusOK, report())
	})
	server := &http.Server{Handler: mux, ReadTimeout: timeout, WriteTimeout: timeout}
	_ = conns.Serve(ctx, server, conns.Patient(ln, nil)) // Patient handles all errors
}

// Fetch returns the report of the forwarder behind a socket, decoded and as bytes.
func Fetch(ctx context.Context, socket string) (Report, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return unixsock.Dial(ctx, socket)
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/status", nil)
	if err != nil {
		return Report{}, nil, err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return Report{}, nil, fmt.Errorf("agent at %s: %w: is flor agent run running?", socket, err)
	}
	defer res.Body.Close()
	var raw json.RawMessage
	if err := json.NewDecoder(res.Body).Decode(&raw); err != nil {
		return Report{}, nil, fmt.Errorf("agent at %s: %w", socket, err)
	}
	var r Report
	if err := json.Unmarshal(raw, &r); err != nil {
		return Report{}, nil, fmt.Errorf("agent at %s: %w", socket, err)
	}
	return r, raw, nil
}
