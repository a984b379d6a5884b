package agenttest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/identity"
)

// Host is a state directory, written as activation writes it.
type Host struct {
	Layout   florete.Layout
	Name     string
	Roots    []string // of its manifests
	Serial   int64    // of the manifest in force
	Provider string   // address in its manifests; nobody is there

	// StaleAfter, when set, is that of the need for documents, which its manifests then have.
	StaleAfter int
}

// files are what a cert need delivers.
var files = map[string]florete.File{
	florete.FileSVID:   {Value: "svid", Mode: "0444"},
	florete.FileKey:    {Value: "key", Mode: "0400"},
	florete.FileBundle: {Value: "bundle", Mode: "0444"},
}

// NewHost makes the empty state directory of a host that trusts ca.
func NewHost(t testing.TB, name string, ca *CA) *Host {
	return &Host{Layout: florete.Layout(t.TempDir()), Name: name, Roots: []string{ca.Root}, Provider: "127.0.0.1:4600"}
}

// Socket is where the host's agent answers.
func (h *Host) Socket() string { return filepath.Join(string(h.Layout), "agent.sock") }

// CertNeed is the id of the need for the SVID of id.
func CertNeed(id florete.ID) string { return "cert-" + strings.ReplaceAll(id.Short(), "/", "-") }

// Accept puts a manifest in force: the forwarder's part f, and a cert need for the
// node and for each of certs.
func (h *Host) Accept(t testing.TB, f florete.Forwarder, certs ...florete.ID) {
	t.Helper()
	node := ID("node/" + h.Name)
	m := florete.Manifest{
		Cluster: "demo", Host: h.Name, TrustDomain: Domain,
		Trust:    florete.Trust{Roots: h.Roots, SigningKeys: []string{}},
		Identity: florete.Identity{ID: node, SSHHostKey: "ssh-ed25519 AAAA"},
		Roles:    []string{"node"},
		Providers: map[string]map[string]florete.Provider{"forge": {
			"cert": {ID: ID("service/forge/florete-provider-cert"), Addresses: florete.Addresses{h.Provider}},
		}},
		Forwarder: f,
	}
	for _, id := range append([]florete.ID{node}, certs...) {
		m.Needs = append(m.Needs, florete.Need{
			ID: CertNeed(id), Kind: "cert", For: id, Providers: []string{"forge"}, Request: json.RawMessage(fmt.Sprintf(`{"id":%q}`, id)),
			Deliver:  florete.Deliver{Files: files},
			OnChange: []string{}, DependsOn: []string{}, Generation: 1,
		})
	}
	if h.StaleAfter > 0 {
		m.Providers["forge"]["config"] = m.Providers["forge"]["cert"]
		m.Needs = append(m.Needs, florete.Need{
			ID: "config-documents", Kind: "config", For: node, Providers: []string{"forge"}, Request: json.RawMessage("{}"),
			OnChange: []string{}, DependsOn: []string{}, Renew: florete.Renew{StaleAfter: h.StaleAfter}, Generation: 1,
			Deliver: florete.Deliver{Files: map[string]florete.File{}},
		})
	}
	body := withoutNulls(t, m)
	h.Serial++
	envelope := marshal(t, florete.Envelope{
		Schema: florete.EnvelopeSchema, Format: florete.NewestFormat, Cluster: m.Cluster, Host: m.Host, Kind: florete.DocManifest,
		Digest: florete.Digest(body), Serial: h.Serial,
	})
	doc, err := florete.Open(envelope, body, "")
	if err != nil {
		t.Fatal(err)
	}
	swap(t, h.Layout.Documents(), func(dir string) {
		if err := doc.Write(dir); err != nil {
			t.Fatal(err)
		}
	})
}

// Deliver issues and delivers an SVID of id.
func (h *Host) Deliver(t testing.TB, ca *CA, id florete.ID, lifetime time.Duration) {
	t.Helper()
	svid, key := ca.Issue(t, id, lifetime)
	swap(t, h.Layout.Need(CertNeed(id)), func(dir string) {
		for name, b := range map[string][]byte{florete.FileSVID: svid, florete.FileKey: key, florete.FileBundle: []byte(ca.Root)} {
			mode, err := files[name].Perm()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), b, os.FileMode(mode)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

var generation atomic.Int64

// swap makes a new generation below dir and puts it in force.
func swap(t testing.TB, dir string, fill func(dir string)) {
	t.Helper()
	gen := fmt.Sprintf("gen-%d", generation.Add(1))
	if err := os.MkdirAll(filepath.Join(dir, gen), 0o755); err != nil {
		t.Fatal(err)
	}
	fill(filepath.Join(dir, gen))
	next := filepath.Join(dir, "next")
	if err := os.Symlink(gen, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, florete.Current(dir)); err != nil {
		t.Fatal(err)
	}
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withoutNulls writes v with empty lists where Go's are nil: a document has no
// nulls.
func withoutNulls(t testing.TB, v any) []byte {
	t.Helper()
	return []byte(strings.ReplaceAll(string(marshal(t, v)), ":null", ":[]"))
}

// Identities reads what was delivered to the host.
func (h *Host) Identities(t testing.TB) *identity.Set {
	t.Helper()
	doc, err := h.Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	set, problems := identity.Load(h.Layout, doc.Manifest(), &identity.Set{})
	for _, p := range problems {
		t.Fatal(p)
	}
	return set
}

// Provide has the host answer a kind of need, in a policy beside its manifest.
func (h *Host) Provide(t testing.TB, kind string) {
	t.Helper()
	body := marshal(t, florete.Policy{
		Cluster: "demo", Host: h.Name, TrustDomain: Domain, Trust: florete.Trust{Roots: h.Roots, SigningKeys: []string{}},
		Provider: map[string]florete.Listening{kind: {ID: ID("service/" + h.Name + "/" + florete.ProviderService(kind)), Listen: []string{":4600"}}},
		Devices:  []florete.Device{}, Kinds: map[string]json.RawMessage{kind: json.RawMessage("{}")}, Grants: []florete.Grant{},
	})
	doc, err := florete.Open(marshal(t, florete.Envelope{
		Schema: florete.EnvelopeSchema, Format: florete.NewestFormat, Cluster: "demo", Host: h.Name, Kind: florete.DocPolicy, Digest: florete.Digest(body), Serial: 1,
	}), body, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Write(florete.Current(h.Layout.Documents())); err != nil {
		t.Fatal(err)
	}
}
