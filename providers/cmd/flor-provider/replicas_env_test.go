package main

import (
	"crypto"
	"crypto/tls"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/etcdtest"
	"github.com/florete/florete/tests/kit/providertest"
)

// replica is a provider host of a cluster whose hosts share a store.
type replica struct {
	name, dir, settings string
	addresses           map[string]string // by kind
	device              document.Device
	run                 provider // of kind "cert"
}

// replicas are such hosts, with the host that enrols at them.
type replicas struct {
	t       *testing.T
	etcd    *etcdtest.Cluster
	kinds   []string
	serial  int64
	rootDir string
	from    string // whose state moves into the store; empty for nobody's
	hostKey ssh.Signer
	svid    *tls.Certificate
	all     []*replica

	change func(*document.Policy) // of each policy that is deployed; nil for none
}

// newReplicas makes the store and the trust domain.
func newReplicas(t *testing.T, members int, kinds ...string) *replicas {
	t.Helper()
	c := &replicas{t: t, etcd: etcdtest.StartTLS(t, members), kinds: kinds, rootDir: t.TempDir(), hostKey: kit.NewHostKey()}
	c.must(root(c.rootDir))
	return c
}

func (c *replicas) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// add makes a host with an issuing key of its own, and SVIDs of its other processes.
func (c *replicas) add(name string) *replica {
	c.t.Helper()
	r := &replica{name: name, dir: c.t.TempDir(), addresses: map[string]string{}}
	hostKey := filepath.Join(r.dir, "ssh_host_ed25519_key")
	r.device = document.Device{ID: kit.ID("node/" + name), SSHHostKey: kit.Authorized(kit.WriteHostKey(hostKey))}
	r.settings = filepath.Join(r.dir, "provider.hujson")
	hash, err := bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.DefaultCost)
	c.must(err)
	c.must(os.WriteFile(filepath.Join(r.dir, "users"), kit.JSON([]any{map[string]any{"email": "alice@demo.flor", "username": "alice", "userID": "u-1", "hash": string(hash)}}), 0o600))
	c.must(os.WriteFile(r.settings, kit.JSON(map[string]any{
		"activation": "activation", "state": "state", "store": c.etcd.Certificates(name), "hostKey": hostKey,
		"cert": map[string]any{"issuingCertificate": "issuing.crt"},
		"oidc": map[string]any{"listen": providertest.Loopback(), "users": "users"},
	}), 0o600))
	for _, file := range []string{"ca.crt", "ca.key"} {
		b, err := os.ReadFile(filepath.Join(c.rootDir, file))
		c.must(err)
		c.must(os.WriteFile(filepath.Join(r.dir, file), b, 0o600))
	}
	for _, kind := range c.kinds {
		r.addresses[kind] = kit.Address()
		c.must(os.MkdirAll(filepath.Join(r.dir, "state", kind), 0o700))
	}
	state := filepath.Join(r.dir, "state", "cert")
	c.must(ca.Request(kit.Domain, filepath.Join(state, "issuing.key"), filepath.Join(state, "issuing.csr")))
	c.must(sign(r.dir))
	root, err := ca.Load(filepath.Join(r.dir, "ca.crt"), filepath.Join(r.dir, "ca.key"))
	c.must(err)
	by := &kit.CA{Root: root, Issuing: root}
	for _, kind := range c.kinds {
		service := spiffe.ProviderService(kind)
		by.Deliver(filepath.Join(r.dir, "activation", "needs", "cert-service-"+service), kit.ID("service/"+name+"/"+service), 7*24*time.Hour)
	}
	c.all = append(c.all, r)
	return r
}

// deploy puts the next policy in force on all replicas that it names.
func (c *replicas) deploy(replicas ...*replica) {
	c.t.Helper()
	c.deployOn(replicas, replicas)
}

// deployOn puts the next policy in force on some hosts only; the others keep the former one.
func (c *replicas) deployOn(on, replicas []*replica) {
	c.t.Helper()
	c.serial++
	shared := &document.SharedStore{Kind: "etcd", Endpoints: c.etcd.Endpoints(), Replicas: map[string][]document.Device{}}
	for _, kind := range c.kinds {
		if c.from != "" {
			shared.From = map[string]string{kind: c.from}
		}
		for _, r := range replicas {
			shared.Replicas[kind] = append(shared.Replicas[kind], r.device)
		}
	}
	for _, r := range on {
		p, err := policyOf(r.dir, "", kit.Authorized(c.hostKey.PublicKey()), c.kinds)
		c.must(err)
		p.Host, p.Store = r.name, shared
		for _, kind := range c.kinds {
			p.Provider[kind] = document.Listening{ID: kit.ProviderID(r.name, kind), Listen: []string{r.addresses[kind]}}
		}
		if c.change != nil {
			c.change(&p)
		}
		kit.Swap(hostdir.Current(hostdir.Layout(filepath.Join(r.dir, "activation")).Documents()), kit.Document(1000+c.serial, p).Files())
	}
}

// client returns the client of the host for the process of a kind on a replica.
func (c *replicas) client(r *replica, kind string) *hostapi.Client {
	b, err := os.ReadFile(filepath.Join(r.dir, "ca.crt"))
	c.must(err)
	roots, err := trust.NewRoots(kit.Domain, []string{string(b)})
	c.must(err)
	return &hostapi.Client{Node: kit.ID("node/ursula"), Roots: roots, HostKey: c.hostKey, SVID: c.svid,
		Provider: document.Provider{ID: kit.ProviderID(r.name, kind), Addresses: []string{r.addresses[kind]}}}
}

// enrol enrols the host at a replica.
func (c *replicas) enrol(at *replica, key crypto.Signer) {
	c.t.Helper()
	q := request("cert-node", kit.ID("node/ursula"), key)
	svid := eventually(c.t, func() (hostapi.Answer, error) { return c.client(at, "cert").Enrol(c.t.Context(), q) })
	pair, err := ca.EncodeKey(key)
	c.must(err)
	certificate, err := tls.X509KeyPair([]byte(svid.Values["svid"]), pair)
	c.must(err)
	c.svid = &certificate
}

// ask sends a request to a replica and returns the answer.
func (c *replicas) ask(r *replica, kind string, need hostapi.Request) hostapi.Answer {
	c.t.Helper()
	return eventually(c.t, func() (hostapi.Answer, error) { return c.client(r, kind).Do(c.t.Context(), hostapi.Path(kind), need) })
}

// both sends a request to two replicas at the same time.
func (c *replicas) both(a, b *replica, kind string, need hostapi.Request) (answers [2]hostapi.Answer) {
	c.t.Helper()
	var both sync.WaitGroup
	for n, r := range []*replica{a, b} {
		both.Go(func() { answers[n] = c.ask(r, kind, need) })
	}
	both.Wait()
	return answers
}

// decided counts the grants of each request, without repetitions, by idempotency key.
func (c *replicas) decided(at *replica, kind string) map[string]int {
	c.t.Helper()
	granted := map[string]int{}
	for _, row := range audit(c.t, at.settings) {
		if row.Outcome == server.Granted && !row.Replayed && row.Kind == kind {
			granted[row.Key]++
		}
	}
	for key, n := range granted {
		if n != 1 {
			c.t.Errorf("request %s was granted %d times", key, n)
		}
	}
	return granted
}

// eventually repeats a request while that may help.
func eventually(t *testing.T, request func() (hostapi.Answer, error)) (a hostapi.Answer) {
	t.Helper()
	kit.Succeeds(t, "an answer", func() (err error) {
		if a, err = request(); err != nil && hostapi.AsError(err).Kind != hostapi.Transient {
			t.Fatal(err)
		}
		return err
	})
	return a
}
