package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/tests/kit"
)

const provider = "forge"

// shape describes a cluster to measure: its size and what its hosts fetch.
type shape struct {
	hosts     int
	services  int  // number of services of each host
	documents bool // whether hosts fetch documents from the provider
	engine    string
}

// cluster contains everything that an operator has for a cluster, such as keys. It is stored in a
// directory.
type cluster struct {
	shape
	dir     string
	began   int64
	ip      string // address of the provider
	ca      *kit.CA
	roots   *trust.Roots
	signing signature.SecretKey
	nodes   []node
}

// node is a host of the cluster. Its SSH host key is in its directory.
type node struct {
	name     string
	id       spiffe.ID
	services []spiffe.ID
	needs    []document.Need // its own SVID, the SVIDs of its services, and its documents if shape.documents
	dir      string
	key      ssh.Signer
}

func newCluster(dir string, s shape) (cluster, error) {
	pid := os.Getpid()
	c := cluster{
		shape: s, dir: dir, began: time.Now().Unix() - 3600, ip: fmt.Sprintf("127.200.%d.%d", byte(pid>>8), byte(pid)|1),
		ca: kit.NewCA(), signing: kit.SigningKey("demo-1"),
	}
	c.roots = c.ca.Roots()
	for i := range s.hosts {
		name := fmt.Sprintf("h%05d", i)
		h := node{name: name, id: kit.ID("node/" + name), dir: filepath.Join(dir, name)}
		for k := range s.services {
			h.services = append(h.services, kit.ID(fmt.Sprintf("service/app%d-%s", k, name)))
		}
		h.needs = c.needs(h)
		if err := os.Mkdir(h.dir, 0o755); err != nil {
			return c, err
		}
		kit.WriteHostKey(h.hostKey())
		text, err := os.ReadFile(h.hostKey())
		if err == nil {
			h.key, err = ssh.ParsePrivateKey(text)
		}
		if err != nil {
			return c, err
		}
		c.nodes = append(c.nodes, h)
		kit.Write(h.closure(), kit.Document(c.serial(-1), c.manifest(h, -1)))
	}
	kit.Write(c.path("policy"), kit.Document(c.serial(-1), c.policy()))
	key, err := ca.EncodeKey(c.ca.Issuing.Key)
	return c, errors.Join(err,
		os.WriteFile(c.path("issuing.key"), key, 0o600),
		os.WriteFile(c.path("issuing.crt"), ca.EncodeCertificates(c.ca.Issuing.Certificate), 0o600),
		os.WriteFile(c.path("root.crt"), []byte(c.ca.RootPEM()), 0o600),
		os.WriteFile(c.path("signing.pub"), []byte(c.signing.ToPublicKey().String()), 0o600))
}

func (c cluster) path(name string) string { return filepath.Join(c.dir, name) }
func (n node) hostKey() string            { return filepath.Join(n.dir, "host_key") }
func (n node) closure() string            { return filepath.Join(n.dir, "closure") }

// serial returns the serial of a version of the documents. Hosts start with version -1.
func (c cluster) serial(version int) int64 { return c.began + int64(version) }

func (c cluster) address(port int) string { return fmt.Sprintf("%s:%d", c.ip, port) }

// These constants are the ports on which the provider serves its kinds of need.
const (
	portCert = 4600 + iota
	portConfig
	portBare
)

// manifest returns the manifest of a host with one service. The host name of the service depends on
// the version, so that each version differs.
func (c cluster) manifest(n node, version int) document.Manifest {
	return document.Manifest{
		Cluster: "demo", Host: n.name, TrustDomain: kit.Domain,
		Trust:     document.Trust{Roots: []string{c.ca.RootPEM()}, SigningKeys: []string{c.signing.ToPublicKey().String()}},
		Identity:  document.Identity{ID: n.id, SSHHostKey: kit.Authorized(n.key.PublicKey())},
		Roles:     []string{fmt.Sprintf("version-%d", version+1)},
		Providers: map[string]map[string]document.Provider{provider: c.providers()},
		Needs:     n.needs,
	}
}

// providers returns the addresses of the provider, by kind of need.
func (c cluster) providers() map[string]document.Provider {
	return map[string]document.Provider{
		cert.Name:         {ID: kit.ProviderID(provider, cert.Name), Addresses: document.Addresses{c.address(portCert)}},
		distribution.Name: {ID: kit.ProviderID(provider, distribution.Name), Addresses: document.Addresses{c.address(portConfig)}},
	}
}

func (c cluster) needs(n node) []document.Need {
	all := []document.Need{kit.CertNeed(n.id, provider)}
	for _, id := range n.services {
		all = append(all, kit.CertNeed(id, provider))
	}
	if c.documents {
		all = append(all, kit.ConfigNeed(n.id, provider))
	}
	return all
}

func (c cluster) policy() document.Policy {
	p := document.Policy{
		Cluster: "demo", Host: provider, TrustDomain: kit.Domain, Trust: document.Trust{Roots: []string{c.ca.RootPEM()}},
		Provider: map[string]document.Listening{
			cert.Name:         {ID: kit.ProviderID(provider, cert.Name), Listen: []string{c.address(portCert)}},
			distribution.Name: {ID: kit.ProviderID(provider, distribution.Name), Listen: []string{c.address(portConfig)}},
		},
		Kinds: map[string]json.RawMessage{cert.Name: kit.JSON(map[string]any{"lifetime": 86400}), distribution.Name: kit.JSON(struct{}{})},
	}
	for _, n := range c.nodes {
		p.Devices = append(p.Devices, document.Device{ID: n.id, SSHHostKey: kit.Authorized(n.key.PublicKey())})
		for _, need := range n.needs {
			p.Grants = append(p.Grants, document.Grant{Caller: n.id, Need: need.ID, Kind: need.Kind, Request: need.Request, Generation: 1})
		}
	}
	return p
}

// write writes a version of the documents for the provider to import, as florctl publish does.
func (c cluster) write(version int) error {
	all := map[string][]document.Document{}
	for _, n := range c.nodes {
		all[n.name] = []document.Document{kit.Document(c.serial(version), c.manifest(n, version))}
	}
	tree, err := archive.Sign(all, c.signing, time.Now())
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := tree.Encode(&b); err != nil {
		return err
	}
	return os.WriteFile(c.path("publication"), b.Bytes(), 0o600)
}
