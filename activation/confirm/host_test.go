package confirm

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// host has enrolled with documents of serial 1, and its provider offers serial 2.
type host struct {
	*testing.T
	*Cluster
	Host
	forge    *Provider
	manifest document.Manifest
}

func newHost(t *testing.T) *host {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := NewCluster(t)
	h := &host{T: t, Cluster: c, manifest: c.Manifest(), forge: c.Serve("forge", l), Host: Host{
		State: hostdir.Layout(filepath.Join(t.TempDir(), "state")), HostKey: c.HostKey, Arm: func(context.Context) error { return nil },
	}}
	t.Cleanup(h.forge.Stop)
	h.manifest.Providers["forge"] = Provides("forge", l.Addr().String())
	closure := t.TempDir()
	kit.Write(closure, kit.Document(1, h.manifest))
	h.publish(1)
	s, err := activation.Run(t.Context(), activation.Config{
		State: h.State, Closure: closure, HostKey: c.HostKey, Once: true,
		Notify: func(context.Context, string) error { return nil },
	})
	if err != nil || s.Exit() != event.ExitFulfilled {
		t.Fatalf("%+v, %v", s, err)
	}
	h.publish(2)
	return h
}

// publish makes the provider offer a manifest whose roles depend on its serial.
func (h *host) publish(serial int64) {
	h.forge.Offer(h.version(serial))
}

func (h *host) version(serial int64) hostapi.SignedDocument {
	m := h.manifest
	if serial > 1 {
		m.Roles = []string{"version-" + string(rune('0'+serial))}
	}
	return kit.Signed(serial, m, h.Signing)
}

// copy returns the host with a copy of its state.
func (h *host) copy(t *testing.T) *host {
	c := *h
	c.T, c.State = t, hostdir.Layout(filepath.Join(t.TempDir(), "state"))
	if out, err := exec.Command("cp", "--archive", string(h.State), string(c.State)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return &c
}

func (h *host) sync() (*hostdir.Change, error) {
	h.Helper()
	c, err := h.Fetch(h.Context())
	if err != nil {
		return nil, err
	}
	return h.Begin(h.Context(), c, longest)
}

// begin runs sync and expects success.
func (h *host) begin() hostdir.Change {
	h.Helper()
	c, err := h.sync()
	if err != nil {
		h.Fatal(err)
	}
	return *c
}

// serial returns the serial of the manifest in force, which must be whole.
func (h *host) serial() int64 {
	h.Helper()
	d, err := h.State.Manifest()
	if err != nil {
		h.Fatal(err)
	}
	return d.Envelope.Serial
}

func (h *host) want(serial int64) {
	h.Helper()
	if got := h.serial(); got != serial {
		h.Fatalf("serial %d is in force, want %d", got, serial)
	}
}

func (h *host) pending() *hostdir.Change {
	h.Helper()
	c, err := h.State.PendingChange()
	if err != nil {
		h.Fatal(err)
	}
	return c
}

func (h *host) undone() *hostdir.Change {
	h.Helper()
	c, err := h.State.Undone()
	if err != nil {
		h.Fatal(err)
	}
	return c
}

// expire moves the deadline of the pending change, if any, into the past.
func (h *host) expire() {
	h.Helper()
	c := h.pending()
	if c == nil {
		return
	}
	now, err := documents.ReadClock()
	if err != nil {
		h.Fatal(err)
	}
	c.Boot, c.Ends = now.Boot, 0
	b, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(h.State.ChangeFile(), b, 0o644)
	}
	if err != nil {
		h.Fatal(err)
	}
}

// supervise runs a supervisor after the deadline.
func (h *host) supervise() {
	h.Helper()
	h.expire()
	armed := false
	if err := Supervise(h.Context(), h.State, nil, func() { armed = true }); err != nil || !armed {
		h.Fatalf("armed: %v, %v", armed, err)
	}
	if c := h.pending(); c != nil {
		h.Fatalf("%s is pending", c)
	}
}

// poll handles the provider's documents as activation does.
func (h *host) poll(serial int64) *hostapi.Error {
	h.Helper()
	s, _, err := documents.Open(h.State, "", nil)
	if err != nil {
		h.Fatal(err)
	}
	return s.Accept(h.Context(), hostapi.Artifact{Documents: []hostapi.SignedDocument{h.version(serial)}})
}

// clean checks that no temporary files are left.
func (h *host) clean() {
	h.Helper()
	entries, err := os.ReadDir(h.State.Documents())
	if err != nil {
		h.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if len(names) > 3 || slices.Contains(names, "current.new") {
		h.Fatalf("left over: %v", names)
	}
}
