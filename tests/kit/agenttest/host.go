package agenttest

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

// Host is a host for tests of the forwarder. Its state directory contains what activation would
// write, so that a test needs no activation.
type Host struct {
	Layout   hostdir.Layout
	Name     string
	Domain   string   // trust domain
	Roots    []string // roots in its manifests
	Serial   int64    // serial of the manifest in force
	Provider string   // address of the provider in its manifests; nobody listens there

	// StaleAfter is the setting staleAfter of the need for documents. If it is zero, the manifests
	// have no such need.
	StaleAfter int

	Needs      []document.Need             // additional needs in its manifests, besides those for SVIDs
	Federation []document.Foreign          // federation in its manifests
	Units      []string                    // additional units in its manifests, all required
	Requests   map[string]document.Request // roles that users may request, in its manifests
	Joins      bool                        // whether its manifests have no SSH host key
}

// NewHost creates a host with the given name and an empty state directory. The host trusts the root
// of ca.
func NewHost(t testing.TB, name string, ca *kit.CA) *Host {
	return &Host{Layout: hostdir.Layout(t.TempDir()), Name: name, Domain: ca.Root.TrustDomain(), Roots: []string{ca.RootPEM()}, Provider: "127.0.0.1:4600"}
}

// Socket returns the path of the Unix socket on which the forwarder of the host serves its status.
func (h *Host) Socket() string { return filepath.Join(string(h.Layout), "agent.sock") }

// Accept puts a manifest in force on the host, with f as its part for the forwarder. The manifest
// also has a need of kind cert for the node, and one for each ID in certs.
func (h *Host) Accept(f document.Forwarder, certs ...spiffe.ID) {
	node := kit.IDIn(h.Domain, "node/"+h.Name)
	m := document.Manifest{
		Requests: h.Requests,
		Cluster:  "demo", Host: h.Name, TrustDomain: h.Domain,
		Trust:    document.Trust{Roots: h.Roots},
		Identity: document.Identity{ID: node, SSHHostKey: "ssh-ed25519 AAAA"},
		Roles:    []string{"node"},
		Providers: map[string]map[string]document.Provider{"forge": {
			"cert": {ID: kit.ProviderID("forge", "cert"), Addresses: document.Addresses{h.Provider}},
		}},
		Forwarder: f, Federation: h.Federation,
		Units: map[string]bool{"activate.service": true, "agent.service": true, "refresh.timer": true, "hosts-file.service": false, "rollback.path": false},
	}
	if h.Joins {
		m.Identity = document.Identity{ID: node, Joins: true}
	}
	for _, u := range h.Units {
		m.Units[u] = true
	}
	for _, id := range append([]spiffe.ID{node}, certs...) {
		n := kit.CertNeed(id, "forge")
		m.Needs = append(m.Needs, n)
		m.Units["need-"+n.ID+".path"] = false
	}
	for _, n := range h.Needs {
		m.Needs = append(m.Needs, n)
		m.Providers["forge"][n.Kind] = m.Providers["forge"]["cert"]
	}
	if h.StaleAfter > 0 {
		m.Providers["forge"]["config"] = m.Providers["forge"]["cert"]
		n := kit.ConfigNeed(node, "forge")
		n.Renew.StaleAfter = h.StaleAfter
		m.Needs = append(m.Needs, n)
	}
	h.Serial++
	kit.Swap(hostdir.Current(h.Layout.Documents()), kit.Document(h.Serial, m).Files())
}

// Deliver issues an SVID for a SPIFFE ID and writes it where activation would deliver it on this
// host.
func (h *Host) Deliver(ca *kit.CA, id spiffe.ID, lifetime time.Duration) {
	ca.Deliver(h.Layout.Need(kit.CertNeed(id).ID), id, lifetime)
}

// Identities reads the SVIDs that were delivered to the host.
func (h *Host) Identities(t testing.TB) *hostdir.SVIDSet {
	t.Helper()
	doc, err := h.Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	set, problems := hostdir.LoadSVIDs(h.Layout, doc.Manifest(), &hostdir.SVIDSet{})
	for _, p := range problems {
		t.Fatal(p)
	}
	return set
}

// Provide puts a policy in force on the host, in addition to the manifest, so that the host is the
// provider for a kind of need. The functions in change can change the policy before it is written.
func (h *Host) Provide(kind string, change ...func(*document.Policy)) {
	p := document.Policy{
		Cluster: "demo", Host: h.Name, TrustDomain: kit.Domain, Trust: document.Trust{Roots: h.Roots},
		Provider: map[string]document.Listening{kind: {ID: kit.ProviderID(h.Name, kind), Listen: []string{":4600"}}},
		Kinds:    map[string]json.RawMessage{kind: json.RawMessage("{}")},
	}
	for _, c := range change {
		c(&p)
	}
	kit.Write(hostdir.Current(h.Layout.Documents()), kit.Document(1, p))
}
