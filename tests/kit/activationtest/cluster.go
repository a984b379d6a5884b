// Package activationtest simulates the environment of a host, for tests of activation. It provides
// a test cluster with a CA and documents. Its providers speak the real protocol over TLS, through
// connections in memory, and can be made to fail.
package activationtest

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
)

// Node is the SPIFFE ID of the host under test, and Service the ID of the service that runs on it.
var (
	Node    = kit.ID("node/ursula")
	Service = kit.ID("service/outline")
)

// Cluster is a test cluster. It contains the certificate authority, the key that signs the
// documents, and the SSH key of the host under test.
type Cluster struct {
	t       testing.TB
	CA      *kit.CA
	Former  *kit.CA             // older CA that providers still trust, although they issue below CA; nil if there is none
	Signing signature.SecretKey // key for signing documents
	HostKey string              // file of the host's SSH key
	SSH     ssh.Signer          // key that signs SSH certificates

	mu      sync.Mutex
	hostPub ssh.PublicKey // public host key in the providers' policies
}

// NewCluster returns a test cluster with one host, the host under test. It creates new keys, and
// writes the host's SSH key to a temporary directory of the test.
func NewCluster(t testing.TB) *Cluster {
	c := &Cluster{t: t, CA: kit.NewCA(), Signing: kit.SigningKey("demo-1"), HostKey: filepath.Join(t.TempDir(), "ssh_host_ed25519_key"), SSH: kit.NewHostKey()}
	c.Declare(kit.WriteHostKey(c.HostKey))
	return c
}

// Declare sets the SSH host key that the cluster's flake declares for the host under test.
// Manifests created afterwards contain this key, and providers accept no other key.
func (c *Cluster) Declare(hostKey ssh.PublicKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hostPub = hostKey
}

func (c *Cluster) declared() ssh.PublicKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hostPub
}

// Manifest returns a manifest of the host under test. The host needs a certificate, an OIDC client
// that depends on the certificate, and its own documents. All three come from the provider host
// forge, whose address is forge:1. The provider host spare, at spare:1, is declared but unused.
func (c *Cluster) Manifest() document.Manifest {
	m := document.Manifest{
		Cluster: "demo", Host: Node.Name(), TrustDomain: kit.Domain,
		Trust:     document.Trust{Roots: []string{c.CA.RootPEM()}, SigningKeys: []string{c.Signing.ToPublicKey().String()}},
		Identity:  document.Identity{ID: Node, SSHHostKey: kit.Authorized(c.declared())},
		Providers: map[string]map[string]document.Provider{},
		Needs:     []document.Need{kit.CertNeed(Node, "forge"), kit.OIDCNeed("oidc-outline", Service, "forge"), kit.ConfigNeed(Node, "forge")},
	}
	for _, name := range []string{"forge", "spare"} {
		m.Providers[name] = Provides(name, name+":1")
	}
	return m
}

// Provides returns the declaration of a provider host, as a map from a kind of need to the provider
// of that kind. One process at the given address serves all kinds. The kind "tls" is included,
// although the host under test has no such need.
func Provides(name, address string) map[string]document.Provider {
	p := document.Provider{ID: kit.ProviderID(name, "cert"), Addresses: document.Addresses{address}}
	return map[string]document.Provider{"cert": p, "config": p, "oidc": p, "ssh": p, "tls": p}
}

// trusts returns the roots that providers use to verify the certificates of callers.
func (c *Cluster) trusts() *trust.Roots {
	if c.Former == nil {
		return c.CA.Roots()
	}
	roots, err := trust.NewRoots(kit.Domain, []string{c.Former.RootPEM(), c.CA.RootPEM()})
	c.must(err)
	return roots
}

func (c *Cluster) must(err error) {
	if err != nil {
		c.t.Helper()
		c.t.Fatal(err)
	}
}
