package sim

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit"
)

// Host is a simulated host that runs activation.
type Host struct {
	process
	id        spiffe.ID
	hostKey   string // path of the SSH host key
	publicKey string

	needs  []document.Need // needs in the newest commit
	target int64           // serial of the newest commit that was published or deployed to the host

	mu     sync.Mutex
	disk   int   // number of the directory that is the disk
	serial int64 // serial of the manifest in force
	status event.Summary
}

func newHost(f *Fleet, name string) *Host {
	h := &Host{id: kit.ID("node/" + name)}
	h.process = process{f: f, name: name, run: h.activate, dead: h.died}
	f.must(os.Mkdir(h.path(), 0o755))
	h.hostKey = h.path("host_key")
	h.publicKey = kit.Authorized(kit.WriteHostKey(h.hostKey))
	return h
}

func (h *Host) path(names ...string) string {
	return filepath.Join(append([]string{h.f.dir, h.name}, names...)...)
}

func (h *Host) closure() string { return h.path("closure") }

// State returns the directories in which the host keeps its state. They are valid only until the
// host dies the next time.
func (h *Host) State() hostdir.Layout {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state()
}

func (h *Host) state() hostdir.Layout { return hostdir.Layout(h.path(fmt.Sprintf("disk-%d", h.disk))) }

// activate runs activation for one life of the host. The life ends when the host is stopped or
// dies.
func (h *Host) activate(ctx context.Context, l *life) {
	c := h.config(l)
	if _, err := activation.Run(ctx, c); err != nil && l.alive() {
		h.f.Errorf("%s: activation ended: %v", h.name, err)
	}
	if !l.alive() {
		os.RemoveAll(string(c.State)) // files that were written after the death
	}
}

func (h *Host) config(l *life) activation.Config {
	return activation.Config{
		State: h.State(), Closure: h.closure(), HostKey: h.hostKey, Backoff: h.f.Backoff,
		Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			return h.f.net.dial(ctx, h.name, l, address)
		},
		Step:   func(name string) { _ = l.moment(name) },
		Notify: func(context.Context, string) error { return l.moment("notify") },
		Report: func(e event.Event) {
			if l.alive() {
				h.event(e)
			}
			_ = l.moment("report " + e.Event)
		},
		Status: func(s event.Summary) {
			if l.alive() {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.status = s
			}
		},
	}
}

// died is called when the host dies. It moves the disk to another place, so that anything that the
// dead life still writes is lost. It also checks the law "whole" on the disk.
func (h *Host) died(*life) {
	h.mu.Lock()
	old := h.state()
	h.disk++
	now := h.state()
	h.status = event.Summary{}
	err := os.Rename(string(old), string(now))
	h.mu.Unlock()
	h.f.must(err)
	h.whole()
}

// Wipe deletes the disk of the host, as a new installation does.
func (h *Host) Wipe() {
	h.Stop()
	h.f.log("%s is wiped", h.name)
	h.f.must(os.RemoveAll(string(h.State())))
	h.forget()
	h.Start()
}

// Clock simulates that the host's clock was wrong until now and is then corrected. The clock was
// ahead by the duration d or, if d is negative, behind. Clock stops the host, and shifts the times
// in its stored state by d.
func (h *Host) Clock(d time.Duration) {
	h.Stop()
	h.f.log("%s has written its state with a clock %s ahead", h.name, d)
	for _, n := range h.needs {
		s, err := h.State().NeedState(n.ID)
		h.f.must(err)
		if s.State == "" {
			continue
		}
		renewal := d
		if !s.Expires.IsZero() { // the expiry is a time of the provider's clock
			renewal = d * time.Duration(100-n.Renew.AtPercent) / 100
		}
		for at, by := range map[*unixtime.Time]time.Duration{&s.LastAttempt: d, &s.StateSince: d, &s.Fulfilled: d, &s.Next: renewal} {
			if !at.IsZero() {
				*at = at.Add(by)
			}
		}
		h.f.must(needstate.State{NeedState: s}.Save(h.State(), n.ID))
	}
	h.forget()
	h.Start()
}

// open lists the needs that are not yet in the right state for the newest commit.
func (h *Host) open() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var open []string
	if h.serial != h.target {
		open = append(open, fmt.Sprintf("manifest in force has serial %d, want %d", h.serial, h.target))
	}
	if len(h.status.Needs) == 0 {
		open = append(open, "does not run")
	}
	for _, n := range h.status.Needs {
		want := hostdir.NeedFulfilled
		if strings.HasPrefix(n.ID, ungranted) {
			want = hostdir.NeedDenied
		}
		if n.State != want || want == hostdir.NeedFulfilled && n.Error != nil {
			open = append(open, fmt.Sprintf("%s is %s after %d attempts, want %s: %+v", n.ID, n.State, n.Attempts, want, n.Error))
		}
	}
	return strings.Join(open, "; ")
}
