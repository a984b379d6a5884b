package graph

import (
	"slices"
	"strings"

	"github.com/florete/florete/nix/operator/compile"
)

// on reports whether a face exists on a host.
func on(f compile.Face, host string) bool {
	return f.ID.Node() == "" || f.ID.Node() == host || f.ID.TrustDomain() == host || strings.HasPrefix(host, "cluster ")
}

// reached returns the parts of a service on a host to which a role leads: the whole service, or
// some of its ports, such as "wiki:metrics".
func (c Cluster) reached(r *role, service, host string) (ends []string) {
	if !slices.Contains(r.services, service) || !r.leadsTo(service, host) {
		return nil
	}
	ports := c.Services[service].Ports
	for _, f := range r.leads[service] {
		if ports != nil && on(f, host) {
			ends = append(ends, service+":"+f.Port)
		}
	}
	slices.Sort(ends)
	if ends = slices.Compact(ends); len(ends) == len(ports) {
		return []string{service}
	}
	return ends
}

// apart returns the ports of a service on a host that must be drawn separately, because some role
// leads to them without leading to all ports.
func (c Cluster) apart(roles []*role, service, host string) (ports []string) {
	if c.Services[service].Ports == nil {
		return nil
	}
	for _, r := range roles {
		ports = append(ports, c.reached(r, service, host)...)
	}
	slices.Sort(ports)
	return slices.DeleteFunc(slices.Compact(ports), func(end string) bool { return end == service })
}
