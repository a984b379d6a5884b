package forward_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// TestStaleDocuments checks that the status reports documents that no provider has answered about.
func TestStaleDocuments(t *testing.T) {
	c := newCluster(t, hello(t))
	c.Laptop.StaleAfter = 3600
	c.AcceptLaptop()
	run(t, c.Laptop)
	kit.Eventually(t, "the manifest", func() bool { return report(t, c.Laptop).Host == c.Laptop.Name })
	if r := report(t, c.Laptop); r.Stale != 0 {
		t.Errorf("stale for %d s at once", r.Stale)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(hostdir.Current(c.Laptop.Layout.Documents()), old, old); err != nil {
		t.Fatal(err)
	}
	r := report(t, c.Laptop)
	var out strings.Builder
	if status.Print(&out, r, time.Now()); r.Stale < 7200 || !strings.Contains(out.String(), "\nstale: no provider has answered about this host's documents for 2h0m") {
		t.Errorf("stale for %d s: %s", r.Stale, &out)
	}
}
