package laws

import (
	"os"
	"slices"
	"strings"
	"sync"
)

// federated is a foreign trust domain.
type federated struct {
	TrustDomain string             `json:"trustDomain"`
	Endpoint    string             `json:"endpoint"`
	EndpointID  string             `json:"endpointID"`
	Bundle      string             `json:"bundle"`
	Identities  map[string]*holder `json:"identities"`
}

// blueBundle is that of blue.example.
var blueBundle = sync.OnceValue(func() string {
	b := must(os.ReadFile("../../tests/golden/compiler/federation/blue.bundle.json"))
	return strings.Join(strings.Fields(string(b)), "")
})

func newFederated() *federated {
	return &federated{"blue.example", "https://forge.blue.example:4605/federation/bundle", "spiffe://blue.example/bundles", blueBundle(), map[string]*holder{}}
}

// federate gives some identities of a foreign trust domain roles, in one way of several.
func (c *cluster) federate(roles []string) {
	which := len(c.Hosts) + 3*len(c.Services) + 5*len(c.Users)
	if which%2 == 0 {
		return
	}
	f := newFederated()
	for i, path := range []string{"user/u70x", "service/s70x", "service/h70x/s71x", "node/h70x"}[which%4:] {
		f.Identities[path] = &holder{Roles: roles[:(which+i)%(len(roles)+1)]}
	}
	c.Federated = map[string]*federated{"blue": f}
	c.Providers["federation"] = provider{Hosts: c.Providers["cert"].Hosts[:1]}
}

// foreigners are who act elsewhere.
func (c *cluster) foreigners() (all []principal) {
	for _, f := range c.Federated {
		for path, h := range f.Identities {
			all = append(all, principal{id: "spiffe://" + f.TrustDomain + "/" + path, roles: h.Roles})
		}
	}
	return all
}

// foreign tells whether who is one of them.
func (p pair) foreign() bool { return !strings.HasPrefix(p.who, "spiffe://laws.flor/") }

// foreignersOn tells whether one of them reaches a service on the host.
func (c *cluster) foreignersOn(host string) bool {
	for _, p := range c.foreigners() {
		for name, s := range c.Services {
			if slices.Contains(s.on(), host) && slices.ContainsFunc(p.roles, func(held string) bool { return c.may(held, name) }) {
				return true
			}
		}
	}
	return false
}

// provides tells whether a host provides a kind.
func (c *cluster) provides(host, kind string) bool {
	return slices.Contains(c.Providers[kind].Hosts, host)
}
