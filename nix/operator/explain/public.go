package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
)

// Edge tells how callers from outside the cluster reach a service, and under which names. It also
// contains the service's additional names within the cluster.
type Edge struct {
	// Ingress lists the hosts through which anyone can reach a public service, sorted.
	Ingress []string `json:"ingress,omitempty"`
	// SignIn is the issuer at which strangers must sign in first. It is empty if they need not.
	SignIn string `json:"signIn,omitempty"`
	// People tells who may sign in to the service, and what it learns about them. It is nil if the
	// topology says nothing about that.
	People *SignIn `json:"people,omitempty"`
	// TLSName is the public name of the service.
	TLSName string `json:"tlsName,omitempty"`
	// TLSAliases lists additional public names of the service.
	TLSAliases []string `json:"tlsAliases,omitempty"`
	// Entries lists the ports of hosts at which callers without an identity reach the service.
	Entries []Entry `json:"entries,omitempty"`
	// Rules is the place in the topology of the rules that restrict strangers at the public names.
	Rules string `json:"rules,omitempty"`
	// Aliases lists additional names of the service in the cluster, fully qualified.
	Aliases []string `json:"aliases,omitempty"`
	// Outside is the host:port to which the service leads if the service does not run in the
	// cluster.
	Outside string `json:"outside,omitempty"`
	// TrustDomain is the foreign trust domain to which the service belongs. Cluster is the other
	// cluster of this trust domain to which the service belongs.
	TrustDomain string `json:"trustDomain,omitempty"`
	Cluster     string `json:"cluster,omitempty"`
	// Sessions describes the sessions that people open at the service. It is nil if they open none.
	Sessions *Sessions `json:"sessions,omitempty"`
	// Each lists the hosts if each of them has its own instance of the service.
	Each  []string `json:"each,omitempty"`
	hosts []string // hosts that lead there
	what  string   // subject of sentences: "it", or the port
}

// edge returns the Edge of a service or of one of its ports.
func (a *Access) edge(target string) Edge {
	name, _ := a.target(target)
	s := a.t.Services[name]
	e := Edge{TLSName: s.TLSName, TLSAliases: s.TLSAliases, Outside: s.Outside, hosts: s.Hosts, what: "it", Entries: a.entries(target), Sessions: sessions(s)}
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
	if !s.Gated() {
		e.People = signIn(s)
	}
	if s.Visibility != "public" || len(s.PublicPorts) > 0 && s.TLSName == "" {
		return e
	}
	e.Ingress = a.ingresses(s, entrance)
	if len(s.Ingress.From) > 0 || s.Ingress.Restricts() {
		e.Rules = "services." + name + ".ingress"
	}
	if s.Gated() {
		e.SignIn, e.People = a.t.Providers["oidc"].Issuer, signIn(s)
	}
	return e
}

// refusedByGate returns the service whose gate refuses a principal at all ports that a name leads
// to. It returns "" if there is no such gate.
func (a *Access) refusedByGate(p Principal, name string) string {
	service, _ := a.target(name)
	s := a.t.Services[service]
	if !s.Gated() || p.ID.Kind() == spiffe.KindUser {
		return ""
	}
	entrance := service
	if s.Ports != nil {
		entrance += ":" + compile.Entrance
		guarded := map[string]bool{compile.Entrance: true}
		for _, rule := range s.Ingress.Paths {
			guarded[rule.Port] = true
		}
		for _, f := range a.faces(name) {
			if !guarded[f.Port] {
				return ""
			}
		}
	}
	for _, host := range a.ingresses(s, entrance) {
		if slices.Contains(p.Hosts, host) {
			return "" // an ingress
		}
	}
	return "service/" + service
}

// ingresses returns the hosts that serve the public names of a service, sorted.
func (a *Access) ingresses(s compile.Service, entrance string) (hosts []string) {
	for host, h := range a.t.Hosts {
		serves := len(s.IngressHosts) == 0 || slices.Contains(s.IngressHosts, host)
		if serves && slices.Contains(h.Capabilities, "ingress") && a.reachedFrom(host, entrance) {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// reachedFrom reports whether any principal on the host reaches the service.
func (a *Access) reachedFrom(host, service string) bool {
	for _, p := range a.principals {
		if slices.Contains(p.Hosts, host) && len(a.held(p, service)) > 0 {
			return true
		}
	}
	return false
}

// String returns the Edge as text for people, one line for each statement. If the service is used
// only within the cluster and under its own name, there is nothing to say and the result is empty.
func (e Edge) String() string {
	var b strings.Builder
	if len(e.Each) > 0 {
		fmt.Fprintf(&b, "each of its hosts has its own: %s\n", strings.Join(e.Each, ", "))
	}
	if len(e.Aliases) > 0 {
		fmt.Fprintf(&b, "it is also called %s\n", strings.Join(e.Aliases, ", "))
	}
	if len(e.Ingress) > 0 {
		who := "anyone reaches"
		if e.SignIn != "" {
			who = "anyone who signs in reaches"
		}
		if e.Rules != "" {
			who = "strangers reach"
		}
		fmt.Fprintf(&b, "it is public: %s it through %s", who, strings.Join(e.Ingress, ", "))
		if e.TLSName != "" {
			fmt.Fprintf(&b, " as %s", strings.Join(append([]string{e.TLSName}, e.TLSAliases...), ", "))
		}
		if e.Rules != "" {
			fmt.Fprintf(&b, ", by the rules in %s", e.Rules)
		}
		if e.SignIn != "" {
			fmt.Fprintf(&b, "; it needs a sign-in at %s", e.SignIn)
		}
		b.WriteString("\n")
	}
	b.WriteString(e.Sessions.String() + e.People.String())
	for _, x := range e.Entries {
		fmt.Fprintln(&b, x)
	}
	if e.TrustDomain != "" {
		fmt.Fprintf(&b, "it belongs to trust domain %s, which itself decides who may connect\n", e.TrustDomain)
	}
	if e.Cluster != "" {
		fmt.Fprintf(&b, "it belongs to cluster %s, which itself decides who may connect\n", e.Cluster)
	}
	if e.Outside != "" {
		fmt.Fprintf(&b, "%s is outside the cluster: %s leads to %s\n", e.what, strings.Join(e.hosts, ", "), e.Outside)
	}
	return b.String()
}
