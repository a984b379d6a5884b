// Package activationtest makes the surroundings of a host under test: a cluster's
// trust, its documents, and providers that speak the real protocol over TLS, in
// memory, and can be told how to fail.
package activationtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
)

// Domain is the trust domain of every cluster here.
const Domain = "demo.flor"

// Node and Forge are the host under test and its first provider.
var (
	Node    = ID("node/ursula")
	Service = ID("service/outline")
)

// ID is the ID of a short form.
func ID(short string) florete.ID {
	id, err := florete.ParseID("spiffe://" + Domain + "/" + short)
	if err != nil {
		panic(err)
	}
	return id
}

// Cluster is what the operator of a cluster has.
type Cluster struct {
	t       testing.TB
	caKey   *ecdsa.PrivateKey
	ca      *x509.Certificate
	Root    string              // PEM
	Signing signature.SecretKey // of documents
	HostKey string              // file of the host's SSH key

	mu      sync.Mutex
	hostPub ssh.PublicKey // that the providers' policies have
}

// NewCluster makes a cluster of one host.
func NewCluster(t testing.TB) *Cluster {
	c := &Cluster{t: t, Signing: SigningKey(t, "demo-1"), HostKey: filepath.Join(t.TempDir(), "ssh_host_ed25519_key")}
	c.NewCA()
	c.Declare(c.ReplaceHostKey())
	return c
}

// ReplaceHostKey gives the host another SSH key.
func (c *Cluster) ReplaceHostKey() ssh.PublicKey {
	_, private, err := ed25519.GenerateKey(nil)
	c.must(err)
	block, err := ssh.MarshalPrivateKey(private, "")
	c.must(err)
	c.must(os.WriteFile(c.HostKey, pem.EncodeToMemory(block), 0o600))
	public, err := ssh.NewPublicKey(private.Public())
	c.must(err)
	return public
}

// Declare is the flake that declares the host's SSH key: it is in manifests from now on,
// and providers know no other.
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

// SigningKey makes a key that signs documents.
func SigningKey(t testing.TB, name string) signature.SecretKey {
	secret, _, err := signature.GenerateKeypair(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// NewCA replaces the cluster's root.
func (c *Cluster) NewCA() {
	var err error
	c.caKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "demo"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		URIs: []*url.URL{{Scheme: "spiffe", Host: Domain}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, c.caKey.Public(), c.caKey)
	c.must(err)
	c.ca, err = x509.ParseCertificate(der)
	c.must(err)
	c.Root = block("CERTIFICATE", der)
}

// issue makes an SVID.
func (c *Cluster) issue(id florete.ID, key crypto.PublicKey, lifetime time.Duration) string {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	c.must(err)
	uri, err := url.Parse(id.String())
	c.must(err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, URIs: []*url.URL{uri}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-time.Minute), NotAfter: time.Now().Add(lifetime),
	}, c.ca, key, c.caKey)
	c.must(err)
	return block("CERTIFICATE", der)
}

// Manifest is one of the host, with a certificate, an OIDC client after it, and
// the documents; provider forge is at forge:1.
func (c *Cluster) Manifest() florete.Manifest {
	m := florete.Manifest{
		Cluster: "demo", Host: Node.Name(), TrustDomain: Domain,
		Trust:     florete.Trust{Roots: []string{c.Root}, SigningKeys: []string{c.Signing.ToPublicKey().String()}},
		Identity:  florete.Identity{ID: Node, SSHHostKey: string(ssh.MarshalAuthorizedKey(c.declared()))},
		Roles:     []string{},
		Providers: map[string]map[string]florete.Provider{},
		Needs:     []florete.Need{CertNeed("cert-node", Node), OIDCNeed("oidc-outline"), ConfigNeed()},
	}
	m.Forwarder.Listen, m.Forwarder.Publish, m.Forwarder.Reach = []string{}, []florete.Published{}, []florete.Reachable{}
	m.Forwarder.Callers, m.Forwarder.SOCKS = []florete.Caller{}, []florete.SOCKS{}
	for _, name := range []string{"forge", "spare"} {
		m.Providers[name] = Provides(name, name+":1")
	}
	return m
}

// Provides is a provider host of which one process, at an address, answers all kinds,
// and "tls", of which activation has none.
func Provides(name, address string) map[string]florete.Provider {
	p := florete.Provider{ID: ProviderID(name), Addresses: florete.Addresses{address}}
	return map[string]florete.Provider{"cert": p, "config": p, "oidc": p, "tls": p}
}

// ProviderID is what a provider presents.
func ProviderID(name string) florete.ID {
	return ID("service/" + name + "/" + florete.ProviderService("cert"))
}

// CertNeed is a need for an SVID; the node's own comes before any other.
func CertNeed(id string, of florete.ID) florete.Need {
	n := need(id, "cert", of, map[string]any{"id": of}, map[string]florete.File{
		florete.FileSVID:   {Value: "svid", Mode: "0444"},
		florete.FileKey:    {Value: "key", Mode: "0400"},
		florete.FileBundle: {Value: "bundle", Mode: "0444"},
	})
	n.Renew.AtPercent = 66
	if of == Node {
		n.DependsOn = []string{}
	}
	return n
}

// OIDCNeed is a need for the client of the service outline, which is restarted.
func OIDCNeed(id string) florete.Need {
	n := need(id, "oidc", Service, map[string]any{"service": Service, "redirectURIs": []string{"http://outline/cb"}}, map[string]florete.File{
		"client-id":     {Value: "clientId", Mode: "0444"},
		"client-secret": {Value: "clientSecret", Mode: "0400"},
	})
	n.OnChange = []string{"outline.service"}
	return n
}

// ConfigNeed is the need for the host's own documents.
func ConfigNeed() florete.Need {
	n := need("config-documents", "config", Node, map[string]any{}, map[string]florete.File{})
	n.Renew.Interval = 900
	return n
}

func need(id, kind string, of florete.ID, request any, files map[string]florete.File) florete.Need {
	raw, err := json.Marshal(request)
	if err != nil {
		panic(err)
	}
	return florete.Need{
		ID: id, Kind: kind, For: of, Providers: []string{"forge"}, Request: raw, Deliver: florete.Deliver{Files: files},
		OnChange: []string{}, DependsOn: []string{"cert-node"}, Generation: 1,
	}
}

// Document is a manifest or policy with its envelope, unsigned.
func (c *Cluster) Document(serial int64, body any) florete.Document {
	return c.open(serial, body, nil)
}

// Signed is a document as the network carries it.
func (c *Cluster) Signed(serial int64, body any, key signature.SecretKey) api.SignedDocument {
	envelope, raw, sig := c.open(serial, body, &key).Bytes()
	return api.SignedDocument{Envelope: string(envelope), Body: string(raw), Signature: sig}
}

func (c *Cluster) open(serial int64, body any, key *signature.SecretKey) florete.Document {
	raw, err := json.Marshal(body)
	c.must(err)
	e := florete.Envelope{Schema: florete.EnvelopeSchema, Format: florete.NewestFormat, Digest: florete.Digest(raw), Serial: serial}
	switch b := body.(type) {
	case florete.Manifest:
		e.Kind, e.Cluster, e.Host = florete.DocManifest, b.Cluster, b.Host
	case florete.Policy:
		e.Kind, e.Cluster, e.Host = florete.DocPolicy, b.Cluster, b.Host
	}
	envelope, err := json.Marshal(e)
	c.must(err)
	sig := ""
	if key != nil {
		s, err := key.Sign(nil, florete.SignedText(envelope))
		c.must(err)
		sig = s.String()
	}
	d, err := florete.Open(envelope, raw, sig)
	c.must(err)
	return d
}

func (c *Cluster) must(err error) {
	if err != nil {
		c.t.Helper()
		c.t.Fatal(err)
	}
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
