package transport_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestAnchors checks the roots of the peers that new streams go to, over every transport.
func TestAnchors(t *testing.T) {
	for _, over := range []document.Transport{document.OverQUIC, document.OverTCP} {
		n := newNetwork(t)
		laptop := agenttest.NewHost(t, "laptop", n.ca)
		set := func(roots ...string) *hostdir.SVIDSet {
			laptop.Roots = roots
			laptop.Accept(document.Forwarder{}, alice)
			return laptop.Identities(t)
		}
		laptop.Deliver(n.ca, alice, time.Hour)
		next := kit.NewCA()
		var current atomic.Pointer[hostdir.SVIDSet]
		current.Store(set(n.ca.RootPEM(), next.RootPEM()))
		n.pool = pool(t, current.Load)
		if got := n.pool.Anchors(); len(got) != 0 {
			t.Errorf("over %s, without a connection: %v", over, got)
		}
		st, err := n.open(t, over)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.pool.Anchors(); !slices.Equal(got, []string{trust.Fingerprint(n.ca.Root.Certificate)}) {
			t.Errorf("over %s: %v", over, got)
		}
		laptop.Deliver(next, alice, time.Hour)
		current.Store(set(next.RootPEM()))
		if got := n.pool.Anchors(); !slices.Equal(got, []string{trust.AnchorUnknown}) {
			t.Errorf("over %s, without its root: %v", over, got)
		}
		n.pool.Recheck()
		kit.Eventually(t, fmt.Sprintf("no anchors over %s", over), func() bool { return len(n.pool.Anchors()) == 0 })
		st.Release()
	}
}

// TestSuperseded checks that connections to a target that proved itself below the former root get
// no new streams once the caller has an SVID below the newer one, and that open streams continue.
func TestSuperseded(t *testing.T) {
	for _, over := range []document.Transport{document.OverQUIC, document.OverTCP} {
		n := newNetwork(t)
		root, err := ca.NewRoot(kit.Domain, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		next := (&kit.CA{Root: root}).Beside()
		laptop := agenttest.NewHost(t, "laptop", n.ca)
		laptop.Roots = []string{n.ca.RootPEM(), next.RootPEM()}
		laptop.Accept(document.Forwarder{}, alice)
		var current atomic.Pointer[hostdir.SVIDSet]
		deliver := func(by *kit.CA) {
			laptop.Deliver(by, alice, time.Hour)
			current.Store(laptop.Identities(t))
		}
		deliver(n.ca)
		n.pool = pool(t, current.Load)
		st, err := n.open(t, over)
		if err != nil {
			t.Fatal(err)
		}
		former := trust.Fingerprint(n.ca.Root.Certificate)
		takes := func(when string, after time.Duration, want ...string) {
			t.Helper()
			n.pool.RetireSuperseded(time.Now().Add(after))
			if got := n.pool.Anchors(); !slices.Equal(got, want) {
				t.Errorf("over %s, %s: %v, want %v", over, when, got, want)
			}
		}
		takes("while the caller has no newer SVID", 10*time.Minute, former)
		deliver(next)
		takes("at once", 0, former)
		takes("ten minutes later", 10*time.Minute)
		exchange(t, st, 1000)
		st.Release()
	}
}
