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

// timeout is the time limit of a status request, for the client and for the server.
const timeout = 5 * time.Second

// Beside returns the path of another socket of the forwarder, in the directory of the given status
// socket. The word names the socket, such as "ping".
func Beside(socket, word string) string {
	return strings.TrimSuffix(strings.TrimSuffix(socket, ".sock"), "status") + word + ".sock"
}

// Listen listens on a Unix socket at the path socket, with the given file mode. A socket that a
// process has left behind is replaced. If another forwarder answers on the socket, Listen returns
// an error.
func Listen(socket string, mode fs.FileMode) (*net.UnixListener, error) {
	if c, err := net.Dial("unix", socket); err == nil {
		c.Close()
		return nil, fmt.Errorf("socket %s: another agent serves it", socket)
	}
	return unixsock.Listen(socket, "unix", mode)
}

// Serve answers status requests on ln until ctx ends, and then removes the socket. It calls report
// for each request.
func Serve(ctx context.Context, ln net.Listener, report func() Report) {
	mux := http.NewServeMux()
	// Only requests for this host name are served. If the socket is published by mistake, a web
	// page therefore cannot read the status.
	mux.HandleFunc("GET agent/status", func(w http.ResponseWriter, _ *http.Request) {
		httpreply.JSON(w, http.StatusOK, report())
	})
	server := &http.Server{Handler: mux, ReadTimeout: timeout, WriteTimeout: timeout}
	_ = conns.Serve(ctx, server, conns.Patient(ln, nil)) // Patient handles all errors
}

// Fetch requests the report of the forwarder that listens on a status socket. It returns the report
// decoded, and the JSON text of the report.
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
