package localapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/document"
)

// These constants limit the resources that callers who read journals can use.
const (
	defaultLines = 200
	maxLines     = 10_000
	maxBytes     = 16 << 20
	maxJournals  = 4 // journals read at the same time, and separately journals followed
	maxFollow    = time.Hour
	minFollow    = time.Minute // time after which another caller may take the place of one that follows
)

// journals limits how many callers read or follow a journal at the same time.
type journals struct {
	reads   chan struct{}
	follows *follows
}

func newJournals() journals {
	return journals{make(chan struct{}, maxJournals), &follows{}}
}

// follows limits how many callers follow a journal at the same time. The API does not know the
// identities of its callers, so it shares the places by time. If all places are taken, a new caller
// takes the place of the oldest one, whose connection is closed. That caller can connect again.
type follows struct {
	mu      sync.Mutex
	running []*following // the oldest is first
}

type following struct {
	since time.Time
	end   context.CancelFunc
}

// begin reserves a place for a caller that follows a journal. The place is free again when the
// caller calls done or the returned context ends. If no place is free, begin ends the follow that
// has run longest, provided that it has had its minimum time. Otherwise ok is false.
func (f *follows) begin(ctx context.Context) (_ context.Context, done func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.running) >= maxJournals {
		oldest := f.running[0]
		if time.Since(oldest.since) < minFollow {
			return nil, nil, false
		}
		oldest.end()
		f.running = f.running[1:]
	}
	ctx, cancel := context.WithTimeout(ctx, maxFollow)
	this := &following{time.Now(), cancel}
	f.running = append(f.running, this)
	return ctx, func() {
		cancel()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running = slices.DeleteFunc(f.running, func(o *following) bool { return o == this })
	}, true
}

// begin reserves a place for a caller that reads a journal or, if followed is true, follows one.
func (j journals) begin(ctx context.Context, followed bool) (_ context.Context, done func(), ok bool) {
	if followed {
		return j.follows.begin(ctx)
	}
	select {
	case j.reads <- struct{}{}:
		return ctx, func() { <-j.reads }, true
	default:
		return nil, nil, false
	}
}

// journal serves the last lines of a unit's journal. It streams new lines if the caller follows the
// journal.
func (h *handler) journal(w http.ResponseWriter, r *http.Request) {
	doc, ok := h.read(w)
	if !ok {
		return
	}
	unit := strings.TrimSuffix(r.PathValue("unit"), ".service")
	if known := h.units(doc.Manifest()); !slices.Contains(known, unit) {
		http.Error(w, fmt.Sprintf("unit %q: want one of %s", unit, strings.Join(known, ", ")), http.StatusNotFound)
		return
	}
	lines, followed, err := parseQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	args := []string{"--unit=" + unit + ".service", "--lines=" + strconv.Itoa(lines), "--output=short-iso", "--no-pager", "--quiet"}
	if followed {
		args = append(args, follow()...)
	}
	ctx, done, ok := h.begin(r.Context(), followed)
	if !ok {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "others read journals: try again", http.StatusServiceUnavailable)
		return
	}
	defer done()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := &answer{ResponseWriter: w, left: maxBytes}
	switch err := run(ctx, out, h.Journal, args); {
	case err == nil, ctx.Err() != nil && r.Context().Err() == nil: // a caller that follows reconnects
	case out.left == maxBytes:
		http.Error(w, "journal: "+err.Error(), http.StatusServiceUnavailable)
	default:
		panic(http.ErrAbortHandler) // otherwise the caller would take a truncated response for a complete one
	}
}

// parseQuery parses the query parameters lines and follow of a request for a journal.
func parseQuery(q url.Values) (lines int, follow bool, err error) {
	lines = defaultLines
	if text := q.Get("lines"); text != "" {
		if lines, err = strconv.Atoi(text); err != nil || lines < 1 || lines > maxLines {
			return 0, false, fmt.Errorf("lines %q: want 1 to %d", text, maxLines)
		}
	}
	switch text := q.Get("follow"); text {
	case "", "0":
	case "1":
		follow = true
	default:
		return 0, false, fmt.Errorf("follow %q: want 1, or leave it out", text)
	}
	return lines, follow, nil
}

// follow returns the options of journalctl with which it prints new lines as they are written. By
// default journalctl shows only the current boot, and in a container it cannot determine the boot.
// The option --merge would show the journals of other machines.
func follow() []string {
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		return []string{"--follow"}
	}
	return []string{"--follow", "--merge", "_MACHINE_ID=" + strings.TrimSpace(string(id))}
}

// units returns the units whose journals a caller may read, by name without ".service".
func (h *handler) units(m document.Manifest) []string {
	var names []string
	for _, ours := range []string{"activate", "agent", "credentials", "host", "hosts-file"} {
		names = append(names, h.Instance.Unit(ours))
	}
	for _, kind := range h.Layout.Provides().Kinds {
		names = append(names, h.Instance.Unit("provider-"+kind))
	}
	for _, p := range m.Forwarder.Publish {
		names = append(names, p.ID.Name())
	}
	for _, n := range m.Needs {
		for _, unit := range n.OnChange {
			if name, ok := strings.CutSuffix(unit, ".service"); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// run runs a program and streams its output to w. The program is killed when ctx ends or when
// writing to w fails.
func run(ctx context.Context, w io.Writer, program string, args []string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout = w
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

// answer writes a response whose parts are sent at once, so that a caller sees new lines of a
// journal immediately. A write fails if the client does not read in time, or if the response
// exceeds the limit of its length.
type answer struct {
	http.ResponseWriter
	left int
}

var errTooMuch = errors.New("more than an answer may have")

func (a *answer) Write(b []byte) (int, error) {
	if len(b) > a.left {
		return 0, errTooMuch
	}
	a.left -= len(b)
	control := http.NewResponseController(a.ResponseWriter)
	if err := control.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return 0, err
	}
	n, err := a.ResponseWriter.Write(b)
	if err == nil {
		err = control.Flush()
	}
	return n, err
}
