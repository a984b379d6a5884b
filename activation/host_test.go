package activation

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// host is the host under test, with its cluster and its providers forge and spare.
type host struct {
	t *testing.T
	*Cluster
	forge, spare *Provider
	manifest     document.Manifest
	serial       int64
	config       Config

	mu        sync.Mutex
	events    []event.Event
	notified  []string
	notifyErr error // what notifying units ends with
}

func newHost(t *testing.T) *host {
	h := &host{t: t, Cluster: NewCluster(t), serial: 1}
	h.forge, h.spare = h.Start("forge"), h.Start("spare")
	t.Cleanup(h.forge.Stop)
	t.Cleanup(h.spare.Stop)
	h.manifest = h.Manifest()
	h.config = Config{
		State: hostdir.Layout(t.TempDir()), Closure: t.TempDir(), HostKey: h.HostKey,
		Dial: Dial(map[string]*Provider{"forge": h.forge, "spare": h.spare}),
		Report: func(e event.Event) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.events = append(h.events, e)
		},
		Notify: func(_ context.Context, unit string) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.notifyErr == nil {
				h.notified = append(h.notified, unit)
			}
			return h.notifyErr
		},
	}
	h.deploy()
	return h
}

// deploy puts the manifest into the closure, and on the provider.
func (h *host) deploy() {
	h.t.Helper()
	kit.Write(h.config.Closure, kit.Document(h.serial, h.manifest))
	h.publish(h.serial, h.manifest)
}

// publish makes the forge offer a manifest.
func (h *host) publish(serial int64, m document.Manifest) {
	h.forge.Offer(kit.Signed(serial, m, h.Signing))
}

// once runs one pass.
func (h *host) once() event.Summary {
	h.t.Helper()
	c := h.config
	c.Once = true
	s, err := Run(h.t.Context(), c)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// run activates until stop is called.
func (h *host) run() (stop func() event.Summary) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan event.Summary, 1)
	go func() {
		s, err := Run(ctx, h.config)
		if err != nil {
			h.t.Error(err)
		}
		ended <- s
	}()
	return func() event.Summary {
		cancel()
		return <-ended
	}
}

func (h *host) need(id string) *document.Need {
	i := slices.IndexFunc(h.manifest.Needs, func(n document.Need) bool { return n.ID == id })
	return &h.manifest.Needs[i]
}

func (h *host) state(id string) hostdir.NeedState {
	h.t.Helper()
	s, err := h.config.State.NeedState(id)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *host) file(need, name string) string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(hostdir.Current(h.config.State.Need(need)), name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// lines returns the events as text.
func (h *host) lines() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, e := range h.events {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

func (h *host) wantExit(s event.Summary, code int) {
	h.t.Helper()
	if s.Exit() != code {
		h.t.Fatalf("exit %d, want %d\n%s", s.Exit(), code, h.lines())
	}
}

func (h *host) wantLine(text string) {
	h.t.Helper()
	if !strings.Contains(h.lines(), text) {
		h.t.Fatalf("no line with %q in\n%s", text, h.lines())
	}
}

func (h *host) wantCalls(p *Provider, need string, n int) {
	h.t.Helper()
	if calls := p.Calls(need); len(calls) != n {
		h.t.Fatalf("%d requests for %q, want %d: %+v\n%s", len(calls), need, n, calls, h.lines())
	}
}
