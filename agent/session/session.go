// Package session lists the open sessions of people at published services, and ends them on order.
// A session is a connection to a service whose protocol is SSH, RDP or VNC.
//
// Orders are HTTP requests on a Unix socket beside the status socket: POST /end?id=…&by=…. Only
// root and the accounts of Florete's own processes can connect to it.
package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/sessions"
	"github.com/florete/florete/internal/unixsock"
)

// Table contains the open sessions at services of this host. The zero Table is empty and ready for
// use. A Table is safe for concurrent use.
type Table struct {
	mu   sync.Mutex
	open map[string]*Open
}

// Open is an open session in a Table.
type Open struct {
	table *Table
	about sessions.Session
	bytes func() (sent, received int64)
	end   func()
	by    string
}

// Add adds a session, and gives it an ID. The function bytes returns the bytes that it has carried
// so far. The function end ends it; it must not block.
func (t *Table) Add(s sessions.Session, bytes func() (sent, received int64), end func()) *Open {
	s.ID = strings.ToLower(rand.Text()[:10])
	o := &Open{table: t, about: s, bytes: bytes, end: end}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[string]*Open{}
	}
	t.open[s.ID] = o
	return o
}

// ID returns the ID of the session.
func (o *Open) ID() string { return o.about.ID }

// Ended removes the session from its table. It returns the operator on whose order the session
// ended, or "".
func (o *Open) Ended() (by string) {
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	delete(o.table.open, o.about.ID)
	return o.by
}

// List returns the open sessions, oldest first.
func (t *Table) List() []sessions.Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]sessions.Session, 0, len(t.open))
	for _, o := range t.open {
		s := o.about
		s.Sent, s.Received = o.bytes()
		all = append(all, s)
	}
	slices.SortFunc(all, sessions.Compare)
	return all
}

// End ends the session with an ID, on the order of an operator. It returns false if there is no
// such session.
func (t *Table) End(id, by string) bool {
	t.mu.Lock()
	o := t.open[id]
	if o != nil && o.by == "" {
		o.by = by
	}
	t.mu.Unlock()
	if o == nil {
		return false
	}
	o.end()
	return true
}

// ErrNone is the error of End if no open session has the ID.
var ErrNone = errors.New("no such session")

const (
	timeout = 5 * time.Second // for an order, at both sides
	longest = 512             // bytes of an operator's name
)

// Serve carries out orders on ln until ctx ends, and then removes the socket. Sessions of older
// processes of the forwarder, which are draining, are ended at the sockets that older returns.
func Serve(ctx context.Context, ln net.Listener, t *Table, older func() []string) {
	mux := http.NewServeMux()
	// Only requests for this host name are served, as on the status socket.
	mux.HandleFunc("POST agent/end", func(w http.ResponseWriter, r *http.Request) {
		id, by := r.URL.Query().Get("id"), r.URL.Query().Get("by")
		if by == "" || len(by) > longest || strings.ContainsFunc(by, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			http.Error(w, "by: want the operator who orders this", http.StatusBadRequest)
			return
		}
		if t.End(id, by) {
			return
		}
		for _, socket := range older() {
			if End(r.Context(), socket, id, by) == nil {
				return
			}
		}
		http.Error(w, ErrNone.Error(), http.StatusNotFound)
	})
	server := &http.Server{Handler: mux, ReadTimeout: timeout, WriteTimeout: 2 * timeout}
	_ = conns.Serve(ctx, server, conns.Patient(ln, nil)) // Patient handles all errors
}

// End orders the forwarder that listens on a socket to end a session. The argument by names the
// operator. If no open session has the ID, the error is ErrNone.
func End(ctx context.Context, socket, id, by string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	transport := unixsock.Client(socket)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent/end?"+url.Values{"id": {id}, "by": {by}}.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("agent at %s: %w: is flor agent run running?", socket, err)
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNotFound:
		return fmt.Errorf("%w %q: it has ended, or is on another host", ErrNone, id)
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	return fmt.Errorf("agent at %s: %s: %s", socket, res.Status, strings.TrimSpace(string(text)))
}
