package status

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

// Sessions contains the open sessions of people at services of this host: connections to services
// whose protocol is SSH, RDP or VNC. The zero Sessions is empty and ready for use. A Sessions is
// safe for concurrent use.
type Sessions struct {
	mu   sync.Mutex
	open map[string]*OpenSession
}

// OpenSession is an open session in a Sessions.
type OpenSession struct {
	table *Sessions
	about sessions.Session
	bytes func() (sent, received int64)
	end   func()
	by    string
}

// Add adds a session, and gives it an ID. The function bytes returns the bytes that it has carried
// so far. The function end ends it; it must not block.
func (t *Sessions) Add(s sessions.Session, bytes func() (sent, received int64), end func()) *OpenSession {
	s.ID = strings.ToLower(rand.Text()[:10])
	o := &OpenSession{table: t, about: s, bytes: bytes, end: end}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[string]*OpenSession{}
	}
	t.open[s.ID] = o
	return o
}

// ID returns the ID of the session.
func (o *OpenSession) ID() string { return o.about.ID }

// Ended removes the session from its table. It returns the operator on whose order the session
// ended, or "".
func (o *OpenSession) Ended() (by string) {
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	delete(o.table.open, o.about.ID)
	return o.by
}

// List returns the open sessions, oldest first.
func (t *Sessions) List() []sessions.Session {
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
func (t *Sessions) End(id, by string) bool {
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

// ErrNoSession is the error of EndSession if no open session has the ID.
var ErrNoSession = errors.New("no such session")

const (
	orderTimeout    = 5 * time.Second // for an order, at both sides
	longestOperator = 512             // bytes of an operator's name
)

// ServeSessions carries out orders to end sessions on ln until ctx ends, and then removes the
// socket. An order is an HTTP request: POST /end?id=…&by=…. Only root and the accounts of Florete's
// own processes can connect to the socket. Sessions of older processes of the forwarder, which are
// draining, are ended at the sockets that older returns.
func ServeSessions(ctx context.Context, ln net.Listener, t *Sessions, older func() []string) {
	mux := http.NewServeMux()
	// Only requests for this host name are served, as on the status socket.
	mux.HandleFunc("POST agent/end", func(w http.ResponseWriter, r *http.Request) {
		id, by := r.URL.Query().Get("id"), r.URL.Query().Get("by")
		if by == "" || len(by) > longestOperator || strings.ContainsFunc(by, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			http.Error(w, "by: want the operator who orders this", http.StatusBadRequest)
			return
		}
		if t.End(id, by) {
			return
		}
		for _, socket := range older() {
			if EndSession(r.Context(), socket, id, by) == nil {
				return
			}
		}
		http.Error(w, ErrNoSession.Error(), http.StatusNotFound)
	})
	server := &http.Server{Handler: mux, ReadTimeout: orderTimeout, WriteTimeout: 2 * orderTimeout}
	_ = conns.Serve(ctx, server, conns.Patient(ln, nil)) // Patient handles all errors
}

// EndSession orders the forwarder that listens on a socket to end a session. The argument by names
// the operator. If no open session has the ID, the error is ErrNoSession.
func EndSession(ctx context.Context, socket, id, by string) error {
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
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
		return fmt.Errorf("%w %q: it has ended, or is on another host", ErrNoSession, id)
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	return fmt.Errorf("agent at %s: %s: %s", socket, res.Status, strings.TrimSpace(string(text)))
}
