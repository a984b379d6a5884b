package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
)

// Edge is how a service touches what is not in the cluster.
type Edge struct {
	// Ingress are the hosts through which anyone reaches it, sorted; none unless it
	// is public.
	Ingress []string `json:"ingress,omitempty"`
	// TLSName is what strangers know it by.
	TLSName string `json:"tlsName,omitempty"`
	// TLSAliases are its other names to them.
	TLSAliases []string `json:"tlsAliases,omitempty"`
	// Aliases are its other names in the cluster, whole.
	Aliases []string `json:"aliases,omitempty"`
	// Outside is the host:port that it leads to, when it does not run in the cluster.
	Outside string `json:"outside,omitempty"`
	// TrustDomain is the foreign one that it is of, Cluster the other one of this trust domain.
	TrustDomain string `json:"trustDomain,omitempty"`
	Cluster     string `json:"cluster,omitempty"`
	// Each are the hosts that have one of their own.
	Each  []string `json:"each,omitempty"`
	hosts []string // that lead there
	what  string   // does: "it", or the one of its several ports
}

// edge is that of what somebody names, a service or a port of it.
func (a *Access) edge(target string) Edge {
	name, _ := a.target(target)
	s := a.t.Services[name]
	e := Edge{TLSName: s.TLSName, TLSAliases: s.TLSAliases, Outside: s.Outside, hosts: s.Hosts, what: "it"}
	for _, alias := range s.Aliases {
		e.Aliases = append(e.Aliases, alias+"."+a.t.TrustDomain+spiffe.Suffix)
	}
	entrance := name
	if s.Ports != nil {
		_, port, one := strings.Cut(target, ":")
		for _, p := range slices.Sorted(maps.Keys(s.Ports)) {
			if !one && s.Outside != "" && s.Ports[p].Outside == s.Outside {
				e.what = "its port " + p
				break
			}
		}
		if one {
			e.Outside = s.Ports[port].Outside
		}
		if one && port != compile.Entrance {
			s.Visibility, e.TLSName, e.TLSAliases = "", "", nil
		}
		entrance += ":" + compile.Entrance
	}
	if s.Scoped() {
		e.Each = s.Hosts
	}
	if a.foreign[name] != "" {
		var of bool
		if e.Cluster, of = strings.CutPrefix(s.Hosts[0], "cluster "); !of {
			e.TrustDomain, e.Cluster = s.Hosts[0], ""
		}
	}
	if s.Visibility != "public" {
		return e
	}
	for host, h := range a.t.Hosts {
		if slices.Contains(h.Capabilities, "ingress") && a.reachedFrom(host, entrance) {
			e.Ingress = append(e.Ingress, host)
		}
	}
	slices.Sort(e.Ingress)
	return e
}

// reachedFrom tells whether anyone on the host reaches the service.
func (a *Access) reachedFrom(host, service string) bool {
	for _, p := range a.principals {
		if slices.Contains(p.Hosts, host) && len(a.held(p, service)) > 0 {
			return true
		}
	}
	return false
}

// String is a line for each side, none for most services.
func (e Edge) String() string {
	var b strings.Builder
	if len(e.Each) > 0 {
		fmt.Fprintf(&b, "each of its hosts has its own: %s\n", strings.Join(e.Each, ", "))
	}
	if len(e.Aliases) > 0 {
		fmt.Fprintf(&b, "it is also called %s\n", strings.Join(e.Aliases, ", "))
	}
	if len(e.Ingress) > 0 {
		fmt.Fprintf(&b, "it is public: anyone reaches it through %s", strings.Join(e.Ingress, ", "))
		if e.TLSName != "" {
			fmt.Fprintf(&b, " as %s", strings.Join(append([]string{e.TLSName}, e.TLSAliases...), ", "))
		}
		b.WriteString("\n")
	}
	if e.TrustDomain != "" {
		fmt.Fprintf(&b, "it is of trust domain %s, which decides itself who comes in\n", e.TrustDomain)
	}
	if e.Cluster != "" {
		fmt.Fprintf(&b, "it is of cluster %s, which decides itself who comes in\n", e.Cluster)
	}
	if e.Outside != "" {
		fmt.Fprintf(&b, "%s is outside the cluster: %s leads to %s\n", e.what, strings.Join(e.hosts, ", "), e.Outside)
	}
	return b.String()
}
