package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/oidc"
	"github.com/florete/florete/providers/publish"
)

// domain is the trust domain of every fleet.
const domain = "sim.flor"

// ungranted starts the ids of needs that no policy grants.
const ungranted = "oidc-ungranted"

func id(kind florete.Kind, node, name string) florete.ID {
	id, err := florete.NewID(domain, kind, node, name)
	if err != nil {
		panic(err)
	}
	return id
}

// needs are what a host of a fleet asks for: SVIDs of its own and of a service, an
// OIDC client of that, and its documents.
func (f *Fleet) needs(host string) []florete.Need {
	service := id(florete.KindService, "", "app-"+host)
	svid := func(name string, of florete.ID, after ...string) florete.Need {
		n := f.need(name, "cert", of, map[string]any{"id": of}, map[string]florete.File{
			florete.FileSVID:   {Value: "svid", Mode: "0444"},
			florete.FileKey:    {Value: "key", Mode: "0400"},
			florete.FileBundle: {Value: "bundle", Mode: "0444"},
		})
		n.Renew.AtPercent, n.DependsOn = 66, append([]string{}, after...)
		return n
	}
	config := f.need("config-documents", "config", id(florete.KindNode, "", host), map[string]any{}, map[string]florete.File{})
	config.Renew.Interval = int(f.Every.Seconds())
	return []florete.Need{
		svid("cert-node", id(florete.KindNode, "", host)),
		svid("cert-service-app", service, "cert-node"),
		config,
		f.OIDC("oidc-app", host),
	}
}

const issuerURL = "http://auth.sim.flor.rete"

// OIDC is a need for the client of a host's service.
func (f *Fleet) OIDC(name, host string) florete.Need {
	service := id(florete.KindService, "", strings.TrimPrefix(name, "oidc-")+"-"+host)
	n := f.need(name, "oidc", service, oidc.Request{
		Issuer: issuerURL, Service: service, RedirectURIs: []string{"http://app/callback"},
	}, map[string]florete.File{
		"client-id":     {Value: "clientId", Mode: "0444"},
		"client-secret": {Value: "clientSecret", Mode: "0400"},
		"issuer":        {Value: "issuer", Mode: "0444"},
	})
	n.OnChange = []string{"app.service"}
	return n
}

func (f *Fleet) need(name, kind string, of florete.ID, request any, files map[string]florete.File) florete.Need {
	n := florete.Need{
		ID: name, Kind: kind, For: of, Request: raw(request), Deliver: florete.Deliver{Files: files},
		OnChange: []string{}, DependsOn: []string{"cert-node"}, Generation: 1,
	}
	for _, p := range f.Providers {
		n.Providers = append(n.Providers, p.name)
	}
	return n
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// manifest is the newest one of a host.
func (f *Fleet) manifest(h *Host) florete.Manifest {
	m := florete.Manifest{
		Cluster: "sim", Host: h.name, TrustDomain: domain, Trust: f.trust(),
		Identity: florete.Identity{ID: h.id, SSHHostKey: h.publicKey},
		Roles:    []string{}, Providers: map[string]map[string]florete.Provider{}, Needs: h.needs,
		Forwarder: florete.Forwarder{Listen: []string{}, Publish: []florete.Published{}, Reach: []florete.Reachable{}, Callers: []florete.Caller{}, SOCKS: []florete.SOCKS{}},
	}
	for _, p := range f.Providers {
		m.Providers[p.name] = map[string]florete.Provider{}
		for _, kind := range kinds {
			m.Providers[p.name][kind] = p.self(kind)
		}
	}
	return m
}

// policy is the newest one of a provider.
func (f *Fleet) policy(p *Provider) florete.Policy {
	policy := florete.Policy{
		Cluster: "sim", Host: p.name, TrustDomain: domain, Trust: f.trust(), Provider: map[string]florete.Listening{},
		Devices: []florete.Device{}, Grants: []florete.Grant{},
		Kinds: map[string]json.RawMessage{
			"cert": raw(map[string]int{"lifetime": int(f.Lifetime.Seconds())}), "config": raw(struct{}{}),
			"oidc": raw(map[string]string{"issuer": issuerURL}),
		},
	}
	for _, kind := range kinds {
		policy.Provider[kind] = florete.Listening{ID: p.self(kind).ID, Listen: []string{":4600"}}
	}
	for _, h := range f.Hosts {
		policy.Devices = append(policy.Devices, florete.Device{ID: h.id, SSHHostKey: h.publicKey})
		for _, n := range h.needs {
			if !strings.HasPrefix(n.ID, ungranted) {
				policy.Grants = append(policy.Grants, florete.Grant{Caller: h.id, Need: n.ID, Kind: n.Kind, Request: n.Request, Generation: n.Generation})
			}
		}
	}
	return policy
}

func (f *Fleet) trust() florete.Trust {
	return florete.Trust{
		Roots: []string{string(ca.EncodeCertificates(f.root.Certificate))}, SigningKeys: []string{f.signing.ToPublicKey().String()},
	}
}

// document is a body with its envelope, of the fleet's newest serial.
func (f *Fleet) document(kind, host string, body any) florete.Document {
	b := raw(body)
	d, err := florete.Open(raw(florete.Envelope{
		Schema: florete.EnvelopeSchema, Format: florete.NewestFormat, Cluster: "sim", Host: host, Kind: kind, Digest: florete.Digest(b), Serial: f.serial, Rev: "8eeec93",
	}), b, "")
	f.must(err)
	return d
}

// Commit is a new commit of the flake, in which change is made to each host's
// needs. Nobody has it yet: see Deploy and Publish.
func (f *Fleet) Commit(change func(host string, needs []florete.Need) []florete.Need) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serial = max(f.serial+1, time.Now().Unix())
	for _, h := range f.Hosts {
		h.needs = change(h.name, slices.Clone(h.needs))
		slices.SortFunc(h.needs, func(a, b florete.Need) int { return strings.Compare(a.ID, b.ID) })
	}
	f.log("commit %d", f.serial)
}

// Rotate is a commit that raises the generation of every need that can have another:
// certificates are renewed instead, and documents have serials.
func (f *Fleet) Rotate() {
	f.Commit(func(_ string, needs []florete.Need) []florete.Need {
		for i := range needs {
			if needs[i].Kind == "oidc" {
				needs[i].Generation++
			}
		}
		return needs
	})
}

// Publish gives providers the newest policy, and the newest documents of all hosts
// to hand out.
func (f *Fleet) Publish(providers ...*Provider) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hosts := map[string][]florete.Document{}
	for _, h := range f.Hosts {
		hosts[h.name] = []florete.Document{f.document(florete.DocManifest, h.name, f.manifest(h))}
		h.target = f.serial
	}
	tree, err := publish.Sign(hosts, f.signing, time.Now())
	f.must(err)
	for _, p := range providers {
		f.log("%s gets commit %d", p.name, f.serial)
		f.must(tree.Write(p.path("artifacts")))
		f.swap(p.path("policy"), f.document(florete.DocPolicy, p.name, f.policy(p)))
	}
}

// Deploy switches hosts to the newest commit: a new closure, and activation
// restarted.
func (f *Fleet) Deploy(hosts ...*Host) {
	for _, h := range hosts {
		f.mu.Lock()
		f.swap(h.closure(), f.document(florete.DocManifest, h.name, f.manifest(h)))
		h.target = f.serial
		f.mu.Unlock()
		f.log("%s gets commit %d", h.name, f.serial)
		if h.running() {
			h.Restart()
		}
	}
}

func hostName(i int) string { return fmt.Sprintf("h%03d", i) }
