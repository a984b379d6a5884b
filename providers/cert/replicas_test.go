package cert_test

import (
	"crypto/rand"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/etcdtest"
	"github.com/florete/florete/tests/kit/providertest"
)

// replicas are two provider hosts that share a store. Each has an issuing CA.
func replicas(t *testing.T, nodes ...string) (a, b *providertest.Env) {
	t.Helper()
	etcd, tree := etcdtest.Start(t, 1), rand.Text()
	a = providertest.NewEnv(t, nodes...)
	a.Grant(ursula, "cert-service-outline", "cert", map[string]any{"id": outline})
	a.Share(func() store.Store {
		s := etcd.Tree(t, tree)
		t.Cleanup(func() { a.Stop(); b.Stop() }) // before the store is closed
		return s
	})
	b = a.Beside("horrible")
	a.Start()
	b.Start()
	return a, b
}

// at returns a client that calls another provider.
func at(e *providertest.Env, c *hostapi.Client) *hostapi.Client {
	there := *c
	there.Provider, there.Dial = e.Provider(), e.Dial
	return &there
}

// TestReplicasIssue checks that each replica issues with a separate key, and that all replicas
// accept these certificates.
func TestReplicasIssue(t *testing.T) {
	a, b := replicas(t, "ursula")
	c := a.Stranger(ursula)
	enrol(t, c)
	for i := range 4 {
		from := []*providertest.Env{a, b}[i%2]
		c = at(from, c)
		if err := renew(t, c); err != nil {
			t.Fatalf("at %s: %v", from.Policy.Host, err)
		}
		if err := c.SVID.Leaf.CheckSignatureFrom(from.Issuing.Certificate); err != nil {
			t.Errorf("not issued by %s: %v", from.Policy.Host, err)
		}
	}
	if string(a.Issuing.Certificate.SubjectKeyId) == string(b.Issuing.Certificate.SubjectKeyId) {
		t.Error("two replicas have one issuing key")
	}
	inForce := map[string]int{}
	for _, r := range a.Rows() {
		if r.Code == server.CodeInForce {
			inForce[r.Kind+" at "+r.Detail["host"]]++
		}
	}
	want := map[string]int{"policy at drhorrible": 1, "cert at drhorrible": 1, "policy at horrible": 1, "cert at horrible": 1}
	if !maps.Equal(inForce, want) {
		t.Errorf("what came into force: %v, want %v", inForce, want)
	}
}

// TestReplicasRepeat checks that a repeated request gets the answer that another replica recorded,
// even if this replica answered an earlier request.
func TestReplicasRepeat(t *testing.T) {
	t.Parallel()
	a := providertest.NewEnv(t, "ursula")
	a.Grant(ursula, "cert-service-outline", "cert", map[string]any{"id": outline})
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "shared.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b *providertest.Env
	t.Cleanup(func() { a.Stop(); b.Stop(); db.Close() })
	a.Share(func() store.Store { return db })
	b = a.Beside("horrible")
	a.Start()
	b.Start()
	c := a.Stranger(ursula)
	enrol(t, c)
	request := func(e *providertest.Env, r hostapi.Request) string {
		t.Helper()
		answer, err := at(e, c).Do(t.Context(), hostapi.Path("cert"), r)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Values["svid"]
	}
	fresh := func() hostapi.Request {
		return hostapi.Request{Need: "cert-service-outline", Serial: providertest.Serial, Generation: 1, Body: body(outline)}
	}
	first, second := fresh(), fresh()
	for range 2 {
		before := request(a, first)
		then := request(b, second)
		if got := request(a, second); got != then || got == before {
			t.Error("the same request has another answer at another replica")
		}
		if got := request(b, second); got != then {
			t.Error("the same request has another answer the next time")
		}
	}
	replayed := 0
	for _, r := range a.Rows() {
		if r.Replayed {
			replayed++
		}
	}
	if replayed != 4 {
		t.Errorf("%d answers that were recorded, want 4", replayed)
	}
}

// TestReplicasNonce checks that a proof can be used once, and only at one replica.
func TestReplicasNonce(t *testing.T) {
	a, b := replicas(t, "ursula")
	r := hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(ursula)}
	key, asIs := a.HostKey(ursula), func(*hostapi.Statement) {}
	here, there := dial(t, a), dial(t, b)
	nonce := here.nonce()
	providertest.WantError(t, there.enrol(there.prove(r, key, nonce, asIs)), hostapi.CodeBadNonce)
	proven := here.prove(r, key, nonce, asIs)
	if err := here.enrol(proven); err != nil {
		t.Fatal(err)
	}
	providertest.WantError(t, here.enrol(proven), hostapi.CodeReplayed)
	providertest.WantError(t, there.enrol(there.prove(r, key, nonce, asIs)), hostapi.CodeBadNonce)
	proven = there.prove(r, key, there.nonce(), func(s *hostapi.Statement) { s.Provider = a.Provider().ID })
	providertest.WantError(t, there.enrol(proven), hostapi.CodeUntrusted)
	if err := there.enrol(there.prove(r, key, there.nonce(), asIs)); err != nil {
		t.Errorf("a nonce of its own: %v", err)
	}
}

// TestReplicasReplaced checks that after a machine was replaced at one replica, the former machine
// obtains nothing at any replica, and cannot enrol at a replica that still has the former policy.
func TestReplicasReplaced(t *testing.T) {
	a, b := replicas(t, "ursula")
	former := a.Stranger(ursula)
	enrol(t, former)
	formerKey := former.HostKey
	kit.NextSecond() // times in certificates are whole seconds

	a.ReplaceHostKey(ursula)
	a.Publish(providertest.Serial + 1)
	a.Restart()
	successor := a.Stranger(ursula)
	enrol(t, successor)

	// b has the former policy.
	providertest.WantError(t, renew(t, at(a, former)), hostapi.CodeDeviceKey)
	providertest.WantError(t, renew(t, at(b, former)), hostapi.CodeUntrustedTransient)
	providertest.WantError(t, service(t, at(b, former)), hostapi.CodeUntrustedTransient)
	again := at(b, former)
	again.SVID = nil
	_, err := again.Enrol(t.Context(), hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(ursula)})
	providertest.WantError(t, err, hostapi.CodePolicyBehind)
	if err := renew(t, successor); err != nil {
		t.Errorf("the machine in its place: %v", err)
	}

	b.Policy.Devices = a.Policy.Devices
	b.Publish(providertest.Serial + 1)
	b.Restart()
	former.HostKey = formerKey
	for _, e := range []*providertest.Env{a, b} {
		providertest.WantError(t, renew(t, at(e, former)), hostapi.CodeDeviceKey)
		there := at(e, successor)
		if err := renew(t, there); err != nil {
			t.Errorf("the machine in its place, at %s: %v", e.Policy.Host, err)
		}
		successor.SVID = there.SVID
		if err := service(t, there); err != nil {
			t.Errorf("its service, at %s: %v", e.Policy.Host, err)
		}
	}
}

// TestReplicasTwoMachines checks that a copied machine is noticed at any replica, even at one that
// did not issue the presented certificate.
func TestReplicasTwoMachines(t *testing.T) {
	a, b := replicas(t, "ursula")
	c := a.Stranger(ursula)
	enrol(t, c)
	copied := *c
	turn := func(e *providertest.Env, who *hostapi.Client, what string, want int) {
		t.Helper()
		there := at(e, who)
		if err := renew(t, there); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		who.SVID = there.SVID
		if n := len(alarms(a)); n != want {
			t.Fatalf("%s: %d alarms, want %d: %+v", what, n, want, alarms(a))
		}
	}
	for _, e := range []*providertest.Env{a, b, b, a, b} {
		turn(e, c, "one machine", 0)
	}
	turn(b, &copied, "the copy, with what the other replica issued", 1)
	turn(a, c, "the original", 2)
	row := alarms(b)[0]
	if row.Code != "two-machines" || !strings.Contains(row.Message, "two machines hold its SSH host key") {
		t.Errorf("%+v", row)
	}

	// Both replicas get new issuing keys. Certificates of the former keys still belong to the line.
	a.Stop()
	b.Stop()
	a.CA, b.CA = a.CA.Beside(), b.CA.Beside()
	a.Start()
	b.Start()
	turn(a, c, "after other issuing certificates", 2)
	turn(b, c, "and on", 2)
	turn(b, &copied, "the copy", 3)
}
