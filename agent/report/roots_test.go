package report_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/florete/florete/agent/report"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestRoots follows a CA rotation on a host. A root counts as trusted only when every part of the
// host that verifies certificates has it. The report says which root each SVID leads to.
func TestRoots(t *testing.T) {
	c := agenttest.NewCluster(t, agenttest.RefusingTCP(t))
	h := c.Laptop
	old, next := c.CA, kit.NewCA()
	a, b := trust.Fingerprint(old.Root.Certificate), trust.Fingerprint(next.Root.Certificate)
	collector := report.Collector{Config: report.Config{Layout: h.Layout, Socket: filepath.Join(t.TempDir(), "none")}}
	check := func(when string, trusted, partly, anchors []string) {
		t.Helper()
		r := collector.Collect(t.Context()).Roots
		for _, s := range [][]string{trusted, partly, anchors} {
			slices.Sort(s)
		}
		if r == nil || !slices.Equal(r.Trusted, trusted) || !slices.Equal(r.Partly, partly) || !slices.Equal(r.Anchors, anchors) {
			t.Errorf("%s: %+v, want %v, %v, %v", when, r, trusted, partly, anchors)
		}
	}
	// deliver delivers SVIDs that a CA has issued, together with a bundle.
	deliver := func(by *kit.CA, bundle string) {
		t.Helper()
		for _, id := range []spiffe.ID{agenttest.Laptop, agenttest.Alice, agenttest.Bob} {
			chain, key := kit.EncodeSVID(by.Issue(id, time.Hour))
			kit.Swap(hostdir.Current(h.Layout.Need(kit.CertNeed(id).ID)), map[string][]byte{hostdir.FileSVID: chain, hostdir.FileKey: key, hostdir.FileBundle: []byte(bundle)})
		}
	}
	trustRoots := func(roots ...string) {
		h.Roots = roots
		c.AcceptLaptop()
	}
	both := old.RootPEM() + next.RootPEM()
	if err := os.RemoveAll(h.Layout.Need(kit.CertNeed(agenttest.Bob).ID)); err != nil {
		t.Fatal(err)
	}
	check("before", []string{a}, nil, []string{a})
	trustRoots(old.RootPEM(), next.RootPEM())
	check("prepared", []string{a}, []string{b}, []string{a})
	deliver(old, both)
	check("with the bundle", []string{a, b}, nil, []string{a})
	deliver(next, both)
	check("activated", []string{a, b}, nil, []string{b})
	trustRoots(next.RootPEM())
	check("the former one removed", []string{b}, []string{a}, []string{b})
	deliver(old, both)
	check("an SVID of what is not trusted", []string{b}, []string{a}, []string{trust.AnchorUnknown})
	deliver(next, next.RootPEM())
	check("retired", []string{b}, nil, []string{b})
	kit.Swap(hostdir.Current(h.Layout.Need(kit.CertNeed(agenttest.Bob).ID)), map[string][]byte{hostdir.FileSVID: []byte("x"), hostdir.FileBundle: ca.EncodeCertificates(next.Root.Certificate)})
	check("what cannot be read", nil, []string{b}, []string{b, trust.AnchorUnknown})
}
