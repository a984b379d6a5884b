package activation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/hostdir"
)

// pushed returns a directory of files, as another tool would deliver them.
func pushed(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// old returns a directory with all files that the OIDC need of the tests delivers.
func old(t *testing.T, h *host) (dir string, files map[string]string) {
	files = map[string]string{}
	for name, f := range h.need("oidc-outline").Deliver.Files {
		files[name] = "old " + f.Value
	}
	return pushed(t, files), files
}

// TestAdopt checks that a host moves from files that were pushed to it, one need at a time.
func TestAdopt(t *testing.T) {
	h := newHost(t)
	dir, files := old(t, h)
	h.config.Adopt = map[string]string{"oidc-outline": dir}
	h.wantExit(h.once(), event.ExitFulfilled)
	h.wantCalls(h.forge, "oidc-outline", 0)
	h.wantCalls(h.forge, "cert-node", 1)
	if len(h.notified) > 0 || !strings.Contains(h.lines(), "oidc-outline: adopted from "+dir+"\n") {
		t.Errorf("notified %v\n%s", h.notified, h.lines())
	}
	for name, text := range files {
		path := filepath.Join(hostdir.Current(h.config.State.Need("oidc-outline")), name)
		fi, err := os.Stat(path)
		want, _ := h.need("oidc-outline").Deliver.Files[name].Perm()
		if err != nil || h.file("oidc-outline", name) != text || uint32(fi.Mode().Perm()) != want {
			t.Errorf("%s: %v, %v", path, fi, err)
		}
	}

	// What was taken over stays, also when the pushed files go.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	h.wantExit(h.once(), event.ExitFulfilled)
	h.config.Adopt = nil
	h.wantExit(h.once(), event.ExitFulfilled)
	h.wantCalls(h.forge, "oidc-outline", 0)
	if !strings.Contains(h.lines(), "oidc-outline: adopted before\n") {
		t.Errorf("%s", h.lines())
	}

	// Asking for it takes it over for good.
	h.config.Refetch = pushed(t, map[string]string{"oidc-outline": ""})
	h.wantExit(h.once(), event.ExitFulfilled)
	h.wantCalls(h.forge, "oidc-outline", 1)
	if len(h.notified) != 1 || strings.HasPrefix(h.file("oidc-outline", "client-secret"), "old ") {
		t.Errorf("notified %v", h.notified)
	}
}

// TestAdoptAfterDying checks that an adoption is repeated if activation died between delivering and
// recording it.
func TestAdoptAfterDying(t *testing.T) {
	h := newHost(t)
	dir, _ := old(t, h)
	h.config.Adopt = map[string]string{"oidc-outline": dir}
	h.wantExit(h.once(), event.ExitFulfilled)
	if err := os.Remove(h.config.State.NeedStateFile("oidc-outline")); err != nil {
		t.Fatal(err)
	}
	h.wantExit(h.once(), event.ExitFulfilled)
	h.wantCalls(h.forge, "oidc-outline", 0)
	if s := h.state("oidc-outline"); s.State != hostdir.NeedFulfilled || s.NotifiedGeneration != 1 {
		t.Errorf("%+v", s)
	}
}

func TestAdoptRefuses(t *testing.T) {
	h := newHost(t)
	partial := pushed(t, map[string]string{"client-id": "x"})
	for want, adopt := range map[string]map[string]string{
		"adopt oidc-wiki: the manifest of ursula has no such need":                 {"oidc-wiki": partial},
		"adopt cert-node: kind cert is always fetched: leave it out":               {"cert-node": partial},
		"adopt config-documents: kind config is always fetched: leave it out":      {"config-documents": partial},
		"/client-secret: no such file or directory: the need delivers client-id, ": {"oidc-outline": partial},
	} {
		c := h.config
		c.Adopt, c.Once = adopt, true
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	h.wantCalls(h.forge, "oidc-outline", 0)
	h.wantCalls(h.forge, "cert-node", 0)
}
