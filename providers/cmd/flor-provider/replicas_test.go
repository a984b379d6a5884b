package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store/etcd/etcdtest"
	"github.com/florete/florete/tests/kit"
)

// replica is a provider host of a cluster whose hosts share a store.
type replica struct {
	name, dir, settings, address string
	device                       florete.Device
	run                          provider
}

// replicas are such hosts, with the host that enrols at them.
type replicas struct {
	t       *testing.T
	etcd    *etcdtest.Cluster
	rootDir string
	hostKey ssh.Signer
	all     []*replica
}

func (c *replicas) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// add makes a host with an issuing key of its own.
func (c *replicas) add(name string) *replica {
	c.t.Helper()
	r := &replica{name: name, dir: c.t.TempDir()}
	var err error
	r.address, err = freeAddress()
	c.must(err)
	hostKey := filepath.Join(r.dir, "ssh_host_ed25519_key")
	r.device = florete.Device{ID: kit.ID("node/" + name), SSHHostKey: kit.Authorized(kit.WriteHostKey(hostKey))}
	r.settings = filepath.Join(r.dir, "provider.hujson")
	c.must(os.WriteFile(r.settings, kit.JSON(map[string]any{
		"activation": "activation", "state": "state", "store": c.etcd.Certificates(name), "hostKey": hostKey,
		"cert": map[string]any{"issuingCertificate": "issuing.crt"},
	}), 0o600))
	for _, file := range []string{"ca.crt", "ca.key"} {
		b, err := os.ReadFile(filepath.Join(c.rootDir, file))
		c.must(err)
		c.must(os.WriteFile(filepath.Join(r.dir, file), b, 0o600))
	}
	state := filepath.Join(r.dir, "state", "cert")
	c.must(os.MkdirAll(state, 0o700))
	c.must(ca.Request(kit.Domain, filepath.Join(state, "issuing.key"), filepath.Join(state, "issuing.csr")))
	c.must(sign(r.dir))
	c.all = append(c.all, r)
	return r
}

// deploy has the policy in force by which these hosts are the replicas, with the state that a
// host has, if any.
func (c *replicas) deploy(from string, on ...*replica) {
	c.t.Helper()
	shared := &florete.SharedStore{Kind: "etcd", Endpoints: c.etcd.Endpoints(), Replicas: map[string][]florete.Device{}}
	if from != "" {
		shared.From = map[string]string{"cert": from}
	}
	for _, r := range on {
		shared.Replicas["cert"] = append(shared.Replicas["cert"], r.device)
	}
	for _, r := range on {
		p, err := document(r.dir, r.address, kit.Authorized(c.hostKey.PublicKey()), []string{"cert"})
		c.must(err)
		p.Host, p.Store = r.name, shared
		p.Provider["cert"] = florete.Listening{ID: kit.ProviderID(r.name, "cert"), Listen: []string{r.address}}
		enforce(r.dir, p)
	}
}

// client is the host's, for one of the replicas.
func (c *replicas) client(r *replica) *api.Client {
	b, err := os.ReadFile(filepath.Join(r.dir, "ca.crt"))
	c.must(err)
	roots, err := florete.NewRoots(kit.Domain, []string{string(b)})
	c.must(err)
	return &api.Client{Node: kit.ID("node/ursula"), Roots: roots, HostKey: c.hostKey,
		Provider: florete.Provider{ID: kit.ProviderID(r.name, "cert"), Addresses: []string{r.address}}}
}

// eventually repeats a request while that may help.
func eventually(t *testing.T, request func() (api.Answer, error)) api.Answer {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		a, err := request()
		if err == nil {
			return a
		}
		if api.AsError(err).Kind != api.Transient || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestReplicas: hosts that share a store answer a request once, whichever is asked, and share
// a sealing key that nobody carries.
func TestReplicas(t *testing.T) {
	c := &replicas{t: t, etcd: etcdtest.StartTLS(t, 3), rootDir: t.TempDir(), hostKey: kit.NewHostKey()}
	c.must(root(c.rootDir))
	a, b := c.add("a"), c.add("b")
	c.deploy("", a, b)
	for _, r := range c.all {
		r.run = start(t, r.settings)
	}
	ursula, key := kit.ID("node/ursula"), kit.NewKey()
	enrol := request("cert-node", ursula, key)
	svid := eventually(t, func() (api.Answer, error) { return c.client(a).Enrol(t.Context(), enrol) })
	pair, err := ca.EncodeKey(key)
	c.must(err)
	certificate, err := tls.X509KeyPair([]byte(svid.Values["svid"]), pair)
	c.must(err)
	ask := func(r *replica, need api.Request) api.Answer {
		t.Helper()
		return eventually(t, func() (api.Answer, error) {
			client := c.client(r)
			client.SVID = &certificate
			return client.Do(t.Context(), api.Path("cert"), need)
		})
	}

	// The same request of both at once, and a member dies.
	var needs []api.Request
	for i := range 8 {
		needs = append(needs, request(fmt.Sprintf("cert-service-s%d", i), kit.ID(fmt.Sprintf("service/s%d", i)), key))
	}
	first := make([]string, len(needs))
	for i, need := range needs {
		var answers [2]string
		var both sync.WaitGroup
		for n, r := range []*replica{a, b} {
			both.Go(func() { answers[n] = ask(r, need).Values["svid"] })
		}
		if i == 4 {
			c.etcd.Leader().Kill()
		}
		both.Wait()
		if answers[0] != answers[1] {
			t.Errorf("need %s: two answers to one request", need.Need)
		}
		first[i] = answers[0]
	}

	// A new replica is let in by the others, and has what they answered.
	d := c.add("d")
	c.deploy("", a, b, d)
	d.run = start(t, d.settings)
	if ask(d, needs[0]).Values["svid"] != first[0] {
		t.Error("the new replica answers otherwise")
	}

	// One that is dropped is out at the next rotation, which another orders.
	a.run.kill(t)
	c.deploy("", b, d)
	out, err := exec.Command("flor-provider", "rotate-seal", "cert", "--settings", b.settings).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "for 2 replicas") {
		t.Fatalf("%s, %v", out, err)
	}
	for _, r := range []*replica{b, d} {
		ended := make(chan error)
		go func() { ended <- r.run.Wait() }()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s goes on with the former key", r.name)
		}
		r.run = start(t, r.settings)
		if ask(r, needs[1]).Values["svid"] != first[1] {
			t.Errorf("%s answers otherwise after the rotation", r.name)
		}
	}
	c.must(os.Remove(filepath.Join(a.dir, "state", "cert", "seal.ring")))
	out, err = exec.Command("flor-provider", "unseal", "cert", "--settings", a.settings).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "not opened yet") {
		t.Errorf("a host that was dropped: %s, %v", out, err)
	}

	granted := map[string]int{}
	for _, row := range audit(t, b.settings) {
		if row.Outcome == server.Granted && !row.Replayed {
			granted[row.Key]++
		}
	}
	for key, n := range granted {
		if n != 1 {
			t.Errorf("request %s was granted %d times", key, n)
		}
	}
	if len(granted) != 1+len(needs) {
		t.Errorf("%d requests were granted, want %d", len(granted), 1+len(needs))
	}
	for _, r := range []*replica{b, d} {
		r.run.kill(t)
	}
}
