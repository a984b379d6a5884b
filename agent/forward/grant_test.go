package forward_test

import (
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// granting is a cluster in which bob reaches the service only while a grant for the role oncall is
// in force.
type granting struct {
	*cluster
	t    *testing.T
	leo  spiffe.ID
	key  ssh.Signer
	held accessgrant.Held
}

func newGranting(t *testing.T) *granting {
	g := &granting{newCluster(t, agenttest.Echo(t)), t, kit.ID("user/leo"), kit.NewHostKey(), accessgrant.Held{}}
	g.Publish.Publish[0].Latent = []document.Latent{{ID: bob, Role: "oncall"}}
	g.Reach.Reach[0].Callers, g.Reach.Reach[0].Latent = []spiffe.ID{alice}, []spiffe.ID{bob}
	g.Ursula.Requests = map[string]document.Request{"oncall": {Most: 4, Approvers: []document.Approver{kit.Approver(g.leo, g.key)}}}
	g.acceptUrsula(t)
	g.acceptLaptop(t)
	g.start(t)
	return g
}

func (g *granting) grant(id string, lasts time.Duration) accessgrant.Grant {
	now := time.Now().Truncate(time.Second)
	return accessgrant.Grant{ID: id, Role: "oncall", User: bob, From: unixtime.Of(now), Until: unixtime.Of(now.Add(lasts)), By: g.leo}
}

// put writes the state that activation writes after a provider offered some statements.
func (g *granting) put(offered ...accessgrant.Signed) {
	g.t.Helper()
	next, refused := g.held.Merge(document.Manifest{Cluster: "demo", Requests: g.Ursula.Requests}, offered, time.Now())
	if len(refused) > 0 {
		g.t.Fatal(refused)
	}
	g.held = next
	if err := atomicfile.File(g.Ursula.Layout.AccessGrants(), next.Encode(), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// reaches reports whether bob reaches the service.
func (g *granting) reaches() bool {
	conn, code := socksDial(g.t, g.SOCKS[bob], "outline.demo.flor.rete", g.port(g.t))
	if code != 0 {
		return false
	}
	defer conn.Close()
	return agenttest.Ping(conn) == nil
}

const grantID, otherID = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"

// TestGrant checks that a grant opens a service as soon as it is there, and that the connections of
// its user end when the grant ends, is ended early, or when its approver is revoked.
func TestGrant(t *testing.T) {
	t.Parallel()
	g := newGranting(t)
	if g.reaches() {
		t.Fatal("bob reaches the service without a grant")
	}
	asAlice := dial(t, g.Local)
	opens := func(s accessgrant.Signed) {
		t.Helper()
		g.put(s)
		kit.Eventually(t, "the grant", g.reaches)
	}
	grant := g.grant(grantID, 20*time.Second)
	signed := kit.SignGrant(grant, g.key)
	opens(signed)
	asBob := g.dialAsBob(t)
	if err := agenttest.Ping(asBob); err != nil {
		t.Fatal(err)
	}
	wantReset(t, asBob)
	if now := time.Now(); now.Before(grant.Until.Time) {
		t.Errorf("reset %s early", grant.Until.Sub(now))
	}
	g.put(signed)
	if g.reaches() {
		t.Error("a grant that is over opens the service")
	}

	longer := g.grant(otherID, time.Hour)
	opens(kit.SignGrant(longer, g.key))
	asBob = g.dialAsBob(t)
	if err := agenttest.Ping(asBob); err != nil {
		t.Fatal(err)
	}
	longer.Ends = true
	g.put(kit.SignGrant(longer, g.key))
	wantReset(t, asBob)

	opens(kit.SignGrant(g.grant("00000000000000000000000000000003", time.Hour), g.key))
	asBob = g.dialAsBob(t)
	if err := agenttest.Ping(asBob); err != nil {
		t.Fatal(err)
	}
	kit.WriteRevocations(g.Ursula.Layout.Revocations(), kit.Revocations(1, kit.SigningKey("demo-1"), revocation.Target{ID: g.leo}))
	wantReset(t, asBob)
	if g.reaches() {
		t.Error("the grant of a revoked approver opens the service")
	}
	if err := agenttest.Ping(asAlice); err != nil {
		t.Errorf("alice, who needs no grant: %v", err)
	}
}

// TestForgedGrant checks that the forwarder verifies grants itself, whatever is in its state.
func TestForgedGrant(t *testing.T) {
	t.Parallel()
	g := newGranting(t)
	write := func(s ...accessgrant.Signed) {
		t.Helper()
		if err := atomicfile.File(g.Ursula.Layout.AccessGrants(), accessgrant.Held{Grants: s}.Encode(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	forged := kit.SignGrant(g.grant(grantID, time.Hour), kit.NewHostKey())
	long := kit.SignGrant(g.grant(otherID, 5*time.Hour), g.key)
	elsewhere := g.grant("00000000000000000000000000000003", time.Hour)
	elsewhere.Cluster = "blue"
	write(forged, long, kit.SignGrant(elsewhere, g.key))
	g.acceptUrsula(t) // a pass that has read the grants
	if g.reaches() {
		t.Fatal("a grant that no approver signed opens the service")
	}
	write(forged, long, kit.SignGrant(g.grant("00000000000000000000000000000004", time.Hour), g.key))
	kit.Eventually(t, "the grant among them", g.reaches)
}
