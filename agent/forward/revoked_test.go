package forward_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestRevoked checks that connections of a revoked identity are cut by whichever end has the list
// first, and that new ones are refused.
func TestRevoked(t *testing.T) {
	key := kit.SigningKey("demo-1")
	revokes := func(id spiffe.ID) trust.SignedRevocations {
		return kit.Revocations(2, key, revocation.Target{ID: id})
	}
	atUrsula := func(c *cluster) *agenttest.Host { return c.Ursula }
	atLaptop := func(c *cluster) *agenttest.Host { return c.Laptop }
	for name, x := range map[string]struct {
		list trust.SignedRevocations
		at   func(*cluster) *agenttest.Host // host that has the list
	}{
		"caller, at the service":    {revokes(alice), atUrsula},
		"caller, at its own end":    {revokes(alice), atLaptop},
		"service, at the caller":    {revokes(outline), atLaptop},
		"service, at its own end":   {revokes(outline), atUrsula},
		"suspended, at the service": {kit.Suspensions(2, key, alice), atUrsula},
		"suspended, at its own end": {kit.Suspensions(2, key, alice), atLaptop},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, agenttest.Echo(t))
			c.start(t)
			conn := dial(t, c.Local)
			ping := func() {
				t.Helper()
				if err := agenttest.Ping(conn); err != nil {
					t.Fatal(err)
				}
			}
			ping()
			list := func(number int64, s trust.SignedRevocations) {
				kit.WriteRevocations(x.at(c).Layout.Revocations(), s)
				kit.Eventually(t, "the list", func() bool { r := report(t, x.at(c)).Revocations; return r != nil && r.Number == number })
			}
			list(1, kit.Revocations(1, key, revocation.Target{ID: kit.ID("user/nobody")}))
			ping()
			began := time.Now()
			list(2, x.list)
			wantReset(t, conn)
			t.Logf("cut after %s", time.Since(began))
			if out, err := get(c.Local); err == nil {
				t.Errorf("reached: %s", out)
			}
			// An older list changes nothing.
			kit.WriteRevocations(x.at(c).Layout.Revocations(), kit.Revocations(1, key))
			node := kit.ID("node/" + x.at(c).Name)
			x.at(c).Deliver(c.CA, node, 5*time.Hour) // read together with the list
			kit.Eventually(t, "the list to be read", func() bool {
				return slices.ContainsFunc(report(t, x.at(c)).Identities, func(i status.Identity) bool {
					return i.ID == node && i.Expires != nil && time.Until(*i.Expires) > 4*time.Hour
				})
			})
			if r := report(t, x.at(c)).Revocations; r == nil || r.Number != 2 {
				t.Errorf("in force: %+v", r)
			}
		})
	}
}

// TestUDPRevoked checks that UDP sessions of a revoked or suspended identity end, and that new ones
// are refused.
func TestUDPRevoked(t *testing.T) {
	key := kit.SigningKey("demo-1")
	for name, list := range map[string]trust.SignedRevocations{
		"revoked":   kit.Revocations(1, key, revocation.Target{ID: alice}),
		"suspended": kit.Suspensions(1, key, alice),
	} {
		t.Run(name, func(t *testing.T) {
			c, conn := startUDP(t)
			kit.WriteRevocations(c.Ursula.Layout.Revocations(), list)
			kit.Eventually(t, "the session to end", func() bool { return report(t, c.Ursula).Connections == 0 && report(t, c.Laptop).Connections == 0 })
			sendInVain(t, conn, []byte("ping"))
		})
	}
}

// TestListOverdue checks that the status raises an alarm when a newer list is due, and that the old
// one stays in force.
func TestListOverdue(t *testing.T) {
	c := newCluster(t, hello(t))
	kit.WriteRevocations(c.Ursula.Layout.Revocations(), kit.Revocations(1, kit.SigningKey("demo-1")))
	c.start(t)
	for after, want := range map[time.Duration]bool{0: false, revocation.Lifetime + 2*time.Hour: true} {
		var out strings.Builder
		status.Print(&out, report(t, c.Ursula), time.Now().Add(after))
		if got := strings.Contains(out.String(), "\nrevocations: a newer list than 1 has been due for 2h0m0s: florctl revoke --renew\n") ||
			strings.Contains(out.String(), "\nrevocations: a newer list than 1 has been due for 1h59m59s: florctl revoke --renew\n"); got != want {
			t.Errorf("after %s: %s", after, &out)
		}
	}
}
