package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/tests/kit"
)

// ungranted is the prefix of the IDs of needs that no policy grants. The provider denies them.
const ungranted = "oidc-ungranted"

// needs returns the needs of a host: the SVIDs of the node and of a service, an OIDC client of the
// service, documents, and on every other host the SSH certificate of a user.
func (f *Fleet) needs(host string) []document.Need {
	node := kit.ID("node/" + host)
	config := kit.ConfigNeed(node, f.providers()...)
	config.Renew.Interval = int(f.Every.Seconds())
	needs := []document.Need{
		kit.CertNeed(node, f.providers()...),
		kit.CertNeed(kit.ID("service/app-"+host), f.providers()...),
		config,
		f.OIDC("oidc-app", host),
	}
	if strings.ContainsAny(host[len(host)-1:], "02468") {
		needs = append(needs, kit.SSHNeed(kit.ID("user/"+host), f.providers()...))
	}
	return needs
}

// OIDC returns the need for an OIDC client of the host's service.
func (f *Fleet) OIDC(name, host string) document.Need {
	return kit.OIDCNeed(name, kit.ID("service/"+strings.TrimPrefix(name, "oidc-")+"-"+host), f.providers()...)
}

func (f *Fleet) providers() (names []string) {
	for _, p := range f.Providers {
		names = append(names, p.name)
	}
	return names
}

// manifest returns the manifest of a host in the newest commit.
func (f *Fleet) manifest(h *Host) document.Manifest {
	m := document.Manifest{
		Cluster: "sim", Host: h.name, TrustDomain: kit.Domain, Trust: f.trust(),
		Identity:  document.Identity{ID: h.id, SSHHostKey: h.publicKey},
		Providers: map[string]map[string]document.Provider{}, Needs: h.needs,
	}
	for _, p := range f.Providers {
		m.Providers[p.name] = map[string]document.Provider{}
		for _, kind := range kinds {
			m.Providers[p.name][kind] = p.self(kind)
		}
	}
	return m
}

// policy returns the policy of a provider in the newest commit.
func (f *Fleet) policy(p *Provider) document.Policy {
	policy := document.Policy{
		Cluster: "sim", Host: p.name, TrustDomain: kit.Domain, Trust: f.trust(), Provider: map[string]document.Listening{},
		Kinds: map[string]json.RawMessage{
			"cert": kit.JSON(map[string]int{"lifetime": int(f.Lifetime.Seconds())}), "config": kit.JSON(struct{}{}),
			"oidc": kit.JSON(map[string]string{"issuer": kit.Issuer}),
			"ssh":  kit.JSON(map[string]int{"lifetime": int(f.Lifetime.Seconds()), "generation": 1}),
		},
	}
	for _, kind := range kinds {
		policy.Provider[kind] = document.Listening{ID: p.self(kind).ID, Listen: []string{":4600"}}
	}
	for _, h := range f.Hosts {
		policy.Devices = append(policy.Devices, document.Device{ID: h.id, SSHHostKey: h.publicKey})
		for _, n := range h.needs {
			if !strings.HasPrefix(n.ID, ungranted) {
				policy.Grants = append(policy.Grants, document.Grant{Caller: h.id, Need: n.ID, Kind: n.Kind, Request: n.Request, Generation: n.Generation})
			}
		}
	}
	return policy
}

func (f *Fleet) trust() document.Trust {
	return document.Trust{
		Roots: []string{f.ca.RootPEM()}, SigningKeys: []string{f.signing.ToPublicKey().String()},
	}
}

// Commit makes a new commit of the simulated flake. It calls change with the name of each host and
// its needs, which are certificates and secrets. The host's needs in the new commit are those that
// change returns. The commit takes effect when Deploy or Publish is called.
func (f *Fleet) Commit(change func(host string, needs []document.Need) []document.Need) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serial = max(f.serial+1, time.Now().Unix())
	for _, h := range f.Hosts {
		h.needs = change(h.name, slices.Clone(h.needs))
		slices.SortFunc(h.needs, func(a, b document.Need) int { return strings.Compare(a.ID, b.ID) })
	}
	f.log("commit %d", f.serial)
}

// Rotate makes a commit after which hosts request new secrets: it raises the generation of each
// OIDC need.
func (f *Fleet) Rotate() {
	f.Commit(func(_ string, needs []document.Need) []document.Need {
		for i := range needs {
			if needs[i].Kind == "oidc" {
				needs[i].Generation++
			}
		}
		return needs
	})
}

// Publish gives providers the policy and the documents of the newest commit.
func (f *Fleet) Publish(providers ...*Provider) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hosts := map[string][]document.Document{}
	for _, h := range f.Hosts {
		hosts[h.name] = []document.Document{kit.Document(f.serial, f.manifest(h))}
		h.target = f.serial
	}
	tree, err := archive.Sign(hosts, f.signing, time.Now())
	f.must(err)
	for _, p := range providers {
		f.log("%s gets commit %d", p.name, f.serial)
		f.must(p.publish(tree, f.signing.ToPublicKey().String()))
		kit.Swap(p.path("policy"), kit.Document(f.serial, f.policy(p)).Files())
	}
}

// Deploy gives hosts the documents of the newest commit. It restarts activation on those hosts
// where activation runs.
func (f *Fleet) Deploy(hosts ...*Host) {
	for _, h := range hosts {
		f.mu.Lock()
		kit.Swap(h.closure(), kit.Document(f.serial, f.manifest(h)).Files())
		h.target = f.serial
		f.mu.Unlock()
		f.log("%s gets commit %d", h.name, f.serial)
		if h.running() {
			h.Restart()
		}
	}
}

func hostName(i int) string { return fmt.Sprintf("h%03d", i) }
