package units_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/providers/ca"
)

// issue creates the certificates for etcd of a host, as florctl does on an operator's machine.
func issue(t *testing.T) map[string][]byte {
	t.Helper()
	now := time.Now()
	a, err := ca.NewStore("demo.flor", now)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ca.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.IssueClient(k.Public(), "forge", now.Add(time.Hour), now)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ca.EncodeKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"client.crt": ca.EncodeCertificates(c), "client.key": key}
}

func put(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// host stands in for systemd. It records when each unit was started, and restarts units.
type host struct {
	started   map[string]time.Time
	restarted []string
}

func (h *host) config(dir string, restart func()) units.StoreCertificates {
	return units.StoreCertificates{
		Dir: dir, Units: []string{"store", "cert", "oidc"}, Log: slog.New(slog.DiscardHandler),
		Started: func(_ context.Context, unit string) (time.Time, error) { return h.started[unit], nil },
		Restart: func(_ context.Context, unit string) error {
			h.restarted = append(h.restarted, unit)
			h.started[unit] = time.Now()
			restart()
			return nil
		},
	}
}

// TestApply checks that a unit that was started before its files changed is restarted once. The
// member of etcd is first. A stopped unit stays stopped.
func TestApply(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, issue(t))
	before := time.Now().Add(-time.Hour)
	h := &host{started: map[string]time.Time{"store": before, "oidc": before}}
	for range 2 {
		if err := units.ApplyStoreCertificates(t.Context(), h.config(dir, func() {})); err != nil {
			t.Fatal(err)
		}
		if want := []string{"store", "oidc"}; !slices.Equal(h.restarted, want) {
			t.Fatalf("restarted %q, want %q", h.restarted, want)
		}
	}
}

// TestMeanwhile checks that units are restarted again if files change during the restart.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, issue(t))
	h := &host{started: map[string]time.Time{"oidc": time.Now().Add(-time.Hour)}}
	again := issue(t)
	err := units.ApplyStoreCertificates(t.Context(), h.config(dir, func() {
		if len(h.restarted) == 1 {
			put(t, dir, again)
		}
	}))
	if want := []string{"oidc", "oidc"}; err != nil || !slices.Equal(h.restarted, want) {
		t.Errorf("restarted %q, %v, want %q", h.restarted, err, want)
	}
}

// TestHalf checks that nothing is restarted while a certificate does not belong to its key, for
// example because copying was interrupted.
func TestHalf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := issue(t)
	put(t, dir, files)
	files["client.key"] = issue(t)["client.key"]
	put(t, dir, files)
	h := &host{started: map[string]time.Time{"oidc": time.Now().Add(-time.Hour)}}
	err := units.ApplyStoreCertificates(t.Context(), h.config(dir, func() {}))
	if err == nil || !strings.Contains(err.Error(), "copy its whole directory") || h.restarted != nil {
		t.Errorf("restarted %q, %v", h.restarted, err)
	}
}

// TestWithoutStore checks that nothing is restarted on a host without certificates for etcd.
func TestWithoutStore(t *testing.T) {
	t.Parallel()
	h := &host{started: map[string]time.Time{"oidc": time.Now().Add(-time.Hour)}}
	if err := units.ApplyStoreCertificates(t.Context(), h.config(filepath.Join(t.TempDir(), "store"), func() {})); err != nil || h.restarted != nil {
		t.Errorf("restarted %q, %v", h.restarted, err)
	}
}
