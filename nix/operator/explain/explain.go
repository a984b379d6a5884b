// Package explain answers two questions about access in a cluster: why a principal reaches a
// service or does not reach it, and which principals reach a service.
//
// A principal is a node, a service or a user. It reaches the services named by its roles, directly
// or through a group, and no others. A principal of another cluster is named by its SPIFFE ID, and
// has the roles that the topology gives it.
package explain

import (
	"fmt"
	"maps"
	"slices"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/compile"
)

// Explanation tells whether a principal reaches a service, and why. The principal has access if
// there is at least one chain (a reason for access) and no obstacle.
type Explanation struct {
	Principal spiffe.ID `json:"principal"`
	Service   string    `json:"service"`
	Allowed   bool      `json:"allowed"`
	// Chains lists the chains that lead from the principal's roles to the service.
	Chains []Chain `json:"chains"`
	// Reached lists the faces of the service to which the chains lead, sorted. It is empty if they
	// lead to all faces.
	Reached []compile.Face `json:"reached,omitempty"`
	// Hosts lists the hosts on which the principal can act.
	Hosts []string `json:"hosts"`
	// Obstacles lists the settings that prevent access whatever roles the principal has. The
	// principal gets access only when all of them are removed.
	Obstacles []Obstacle `json:"obstacles"`
	// Ways lists the ways by which other principals reach the service. It is set only if the
	// principal has no chain.
	Ways []Way `json:"ways"`
	// Excepted lists the chains that do not count because a role excludes the service.
	Excepted []Chain `json:"excepted,omitempty"`
	// Ended lists the chains that do not count because the role has ended.
	Ended []Chain `json:"ended,omitempty"`
	// Latent lists the ways by which the principal reaches the service while a grant for a role is
	// in force. It is set only if the principal has no chain.
	Latent []Latent `json:"latent,omitempty"`
	// Remedies lists changes of the topology if the principal has no chain. Each of them gives the
	// principal a chain. The first remedy opens the least additional access.
	Remedies []Remedy `json:"remedies"`
	Edge
	nodes   int
	domain  string // trust domain of the cluster
	foreign bool   // the principal belongs to another cluster
}

// Way is a chain, which is a reason why a role reaches a service, together with the principals that
// hold the role.
type Way struct {
	Chain
	Holders []spiffe.ID `json:"holders"` // sorted
	// Ends contains the time at which a holder's role ends. Holders whose role has no end are left
	// out.
	Ends map[spiffe.ID]unixtime.Time `json:"ends,omitempty"`
}

// Obstacle is a setting in the topology that prevents a principal's access to a service, even if
// one of its roles reaches the service.
type Obstacle struct {
	Problem string `json:"problem"`
	Remedy  Remedy `json:"remedy"` // its Place is empty if no setting removes the obstacle
}

// Explain explains why a principal reaches a service, or what prevents it.
func (a *Access) Explain(p Principal, service string) Explanation {
	of, _ := a.target(service)
	e := Explanation{
		Principal: p.ID,
		Service:   service,
		Chains:    a.held(p, service),
		Hosts:     append([]string{}, p.Hosts...),
		Obstacles: a.obstacles(p, service),
		Ways:      []Way{},
		Remedies:  []Remedy{},
		Edge:      a.edge(service),
		nodes:     len(a.t.Hosts),
		domain:    a.t.TrustDomain,
		foreign:   p.foreign,
	}
	if len(e.Chains) == 0 && !a.stranger(p, service) {
		e.Ways = a.Ways(service)
		e.Latent = ownWays(a.latent(service), p.ID)
		had := p
		had.Roles = p.ended
		e.Ended = had.held(a.to(service))
		e.Excepted = p.held(a.shut(service))
		e.Remedies = append(e.Remedies, a.without(p, of).remedies(p, service)...)
	}
	e.Allowed = len(e.Chains) > 0 && len(e.Obstacles) == 0
	if e.Allowed {
		e.Reached = a.reached(e.Chains, service)
	}
	return e
}

// Ways returns all roles that reach a service, with their holders. It includes roles to whose
// holders an obstacle denies access.
func (a *Access) Ways(service string) []Way {
	ways := []Way{}
	for _, c := range a.to(service) {
		others := func(id spiffe.ID) bool { return a.stranger(a.principals[id], service) }
		ways = append(ways, a.way(c, slices.DeleteFunc(append([]spiffe.ID{}, a.holders[c.Role]...), others)))
	}
	return ways
}

// way returns the way of a chain for some of the holders of its role.
func (a *Access) way(c Chain, holders []spiffe.ID) Way {
	w := Way{Chain: c, Holders: holders}
	for _, id := range holders {
		if end := a.principals[id].until[c.Role]; !end.IsZero() {
			if w.Ends == nil {
				w.Ends = map[spiffe.ID]unixtime.Time{}
			}
			w.Ends[id] = end
		}
	}
	return w
}

func (a *Access) obstacles(p Principal, name string) []Obstacle {
	found := []Obstacle{}
	service, _ := a.target(name)
	if a.stranger(p, service) {
		return found
	}
	if s := a.t.Services[service]; !s.Published {
		var opened []right
		for _, c := range a.chains[service] {
			for _, id := range a.holders[c.Role] {
				if len(a.principals[id].Hosts) > 0 {
					opened = append(opened, rights(id, service, c.faces)...)
				}
			}
		}
		found = append(found, Obstacle{
			fmt.Sprintf("visibility %q keeps service/%s to its own host", s.Visibility, service),
			a.remedy("services."+service+".visibility", "cluster", opened, p, name),
		})
	}
	if len(p.Hosts) == 0 {
		var opened []right
		for s, faces := range a.reach(p, p.Roles) {
			opened = append(opened, rights(p.ID, s, faces)...)
		}
		found = append(found, Obstacle{
			fmt.Sprintf("no host acts as %s", p.ID.Short()),
			a.remedy("hosts.<host>.users", p.ID.Name(), opened, p, name),
		})
	}
	if admits := a.refusedByGate(p, name); admits != "" {
		found = append(found, Obstacle{"inside the cluster, only users pass the gate of " + admits, Remedy{Opens: []Pair{}}})
	}
	return found
}

// without returns the Access that results if the obstacles between a principal and a service are
// removed.
func (a *Access) without(p Principal, service string) *Access {
	b := *a
	if s := a.t.Services[service]; !s.Published {
		s.Published = true
		b.t.Services = maps.Clone(a.t.Services)
		b.t.Services[service] = s
	}
	if len(p.Hosts) == 0 {
		p.Hosts = []string{"<host>"}
		b.principals = maps.Clone(a.principals)
		b.principals[p.ID] = p
	}
	return &b
}
