package cert_test

import (
	"context"
	"crypto/tls"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// renew requests c's own SVID with a key pair of its own, and uses what it receives.
func renew(t *testing.T, c *hostapi.Client) error {
	t.Helper()
	next, err := obtain(t, c, "cert-node", c.Node, c.Do)
	if err == nil {
		c.SVID = next
	}
	return err
}

// enrol enrols c with a new key pair, and uses the SVID that it receives.
func enrol(t *testing.T, c *hostapi.Client) {
	t.Helper()
	next, err := obtain(t, c, "cert-node", c.Node, func(ctx context.Context, _ string, r hostapi.Request) (hostapi.Answer, error) { return c.Enrol(ctx, r) })
	if err != nil {
		t.Fatal(err)
	}
	c.SVID = next
}

func obtain(t *testing.T, c *hostapi.Client, need string, id spiffe.ID, do func(context.Context, string, hostapi.Request) (hostapi.Answer, error)) (*tls.Certificate, error) {
	t.Helper()
	key := kit.NewKey()
	r := hostapi.Request{Need: need, Serial: providertest.Serial, Generation: 1, Body: kit.JSON(hostapi.CertBody{ID: id, CSR: kit.CSR(id, key)})}
	a, err := do(t.Context(), hostapi.Path("cert"), r)
	if err != nil {
		return nil, err
	}
	svid := &tls.Certificate{PrivateKey: key}
	for _, x := range chain(t, a) {
		svid.Certificate = append(svid.Certificate, x.Raw)
	}
	svid.Leaf = chain(t, a)[0]
	return svid, nil
}

// service requests the SVID of a service.
func service(t *testing.T, c *hostapi.Client) error {
	t.Helper()
	_, err := obtain(t, c, "cert-service-outline", outline, c.Do)
	return err
}

// TestReplaced checks that a machine that was replaced by one with another host key obtains nothing
// from any provider whose policy has the new key. This holds although its certificate is valid for
// hours, and even before the new machine enrols.
func TestReplaced(t *testing.T) {
	e := providertest.NewEnv(t, "ursula", "raishan")
	e.Grant(ursula, "cert-service-outline", "cert", map[string]any{"id": outline})
	second := e.Beside("horrible")
	e.Start()
	second.Start()
	at := func(e *providertest.Env, c *hostapi.Client) *hostapi.Client {
		there := *c
		there.Provider, there.Dial = e.Provider(), e.Dial
		return &there
	}
	good := func(c *hostapi.Client, what string) {
		t.Helper()
		for _, p := range []*providertest.Env{e, second} {
			c := at(p, c)
			if err := renew(t, c); err != nil {
				t.Errorf("%s: its own at %s: %v", what, p.Policy.Host, err)
			}
			if err := service(t, c); err != nil {
				t.Errorf("%s: its service's at %s: %v", what, p.Policy.Host, err)
			}
		}
	}
	refused := func(c *hostapi.Client) {
		t.Helper()
		for _, p := range []*providertest.Env{e, second} {
			c := at(p, c)
			providertest.WantError(t, renew(t, c), hostapi.CodeDeviceKey)
			providertest.WantError(t, service(t, c), hostapi.CodeDeviceKey)
		}
	}
	former := e.Client(ursula)
	good(former, "a node that never enrolled here")
	enrol(t, former)
	good(former, "a node that enrolled")
	former = e.Client(ursula) // another SVID, which does not continue the line
	kit.NextSecond()          // times in certificates are whole seconds
	enrol(t, e.Stranger(ursula))
	good(former, "a node that enrolled twice with one host key")

	devices := slices.Clone(e.Policy.Devices)
	deploy := func(serial int64) {
		t.Helper()
		for _, p := range []*providertest.Env{e, second} {
			p.Policy.Devices = e.Policy.Devices
			p.Publish(serial)
			p.Restart()
		}
	}
	e.ReplaceHostKey(ursula)
	deploy(providertest.Serial + 1)
	refused(former)
	kit.NextSecond()
	enrol(t, e.Stranger(ursula))
	refused(former)
	good(e.Client(ursula), "the machine in its place")

	rekeyed := *former // the same machine with the new key
	rekeyed.HostKey = e.HostKey(ursula)
	providertest.WantError(t, renew(t, &rekeyed), hostapi.CodeUntrustedTransient) // so it enrols again
	enrol(t, &rekeyed)
	good(&rekeyed, "the machine with its new key")

	// The flake has the former key again, so the former machine can enrol again.
	e.Policy.Devices = devices
	deploy(providertest.Serial + 2)
	refused(&rekeyed)
	providertest.WantError(t, renew(t, former), hostapi.CodeUntrustedTransient)
	kit.NextSecond()
	enrol(t, former)
	good(former, "the former machine with its former key")
	refused(&rekeyed)

	if err := renew(t, e.Client(kit.ID("node/raishan"))); err != nil {
		t.Errorf("another node: %v", err)
	}
}

// TestReplacedMeanwhile checks that when another machine enrols as a node, at a replica with the
// same store, the former machine is refused even on a connection that was accepted before.
func TestReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	e := providertest.NewEnv(t, "ursula")
	e.Grant(ursula, "cert-service-outline", "cert", map[string]any{"id": outline})
	e.Start()
	former := e.Stranger(ursula)
	enrol(t, former)
	pass := former.Calls()
	defer pass.Close()
	request := func() error {
		_, err := obtain(t, former, "cert-service-outline", outline, pass.Do)
		return err
	}
	for range 2 {
		if err := request(); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sqlite.Open(filepath.Join(e.Dir, "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	other := cert.Device{SSHHostKey: kit.Authorized(kit.NewHostKey().PublicKey()), Since: time.Now().Add(time.Minute).Unix()}
	if _, err := db.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("cert/device/ursula", kit.JSON(other))}}); err != nil {
		t.Fatal(err)
	}
	providertest.WantError(t, request(), hostapi.CodeUntrustedTransient)
}

// TestStolen checks that a copied SVID cannot be renewed, not even once.
func TestStolen(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Start()
	lawful := e.Stranger(ursula)
	enrol(t, lawful)
	thief := *lawful
	thief.HostKey = nil
	providertest.WantError(t, renew(t, &thief), hostapi.CodeDeviceKey)
	thief.HostKey = kit.NewHostKey()
	providertest.WantError(t, renew(t, &thief), hostapi.CodeDeviceKey)
	if err := renew(t, lawful); err != nil {
		t.Error(err)
	}
	rows := e.Audit()
	if len(rows) != 4 || rows[1].Code != hostapi.CodeDeviceKey.Name || rows[1].Caller != ursula.String() || rows[1].From == "" {
		t.Errorf("audit: %+v", rows)
	}
}
