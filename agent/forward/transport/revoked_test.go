package transport_test

import (
	"errors"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestRevokedCaller checks that a revoked caller gets the error that it is revoked, and not that
// its SVID was not delivered.
func TestRevokedCaller(t *testing.T) {
	n := newNetwork(t)
	laptop := agenttest.NewHost(t, "laptop", n.ca)
	laptop.Accept(document.Forwarder{}, alice)
	laptop.Deliver(n.ca, alice, time.Hour)
	kit.WriteRevocations(laptop.Layout.Revocations(), kit.Revocations(1, kit.SigningKey("demo-1"), revocation.Target{ID: alice}))
	m, err := laptop.Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	set, _ := hostdir.LoadSVIDs(laptop.Layout, m.Manifest(), &hostdir.SVIDSet{})
	n.pool = pool(t, func() *hostdir.SVIDSet { return set })
	var revoked *trust.RevokedError
	if _, err := n.open(t, document.AnyTransport); !errors.As(err, &revoked) || revoked.What != alice.Short() {
		t.Errorf("got %v, want that %s is revoked", err, alice.Short())
	}
}
