package explain

import (
	"github.com/florete/florete/internal/spiffe"
)

// Answer lists the principals that reach a service.
type Answer struct {
	Service  string     `json:"service"`
	Reaching []Reaching `json:"reaching"` // sorted by principal
	// Latent lists the ways by which users reach the service only while a grant is in force.
	Latent []Latent `json:"latent,omitempty"`
	Edge
	hidden bool
	ways   []Way
	nodes  int
	domain string // trust domain of the cluster
}

// Reaching is a principal that reaches a service, with the chains that are the reasons for it.
type Reaching struct {
	Principal spiffe.ID `json:"principal"`
	Chains    []Chain   `json:"chains"`
	Hosts     []string  `json:"hosts"` // hosts that act as the principal
}

// WhoCan returns the principals that reach a service. It leaves out users without hosts, because
// they have no access, and principals that the gate of the service refuses.
func (a *Access) WhoCan(service string) Answer {
	of, _ := a.target(service)
	answer := Answer{Service: service, Reaching: []Reaching{}, Edge: a.edge(service), nodes: len(a.t.Hosts), domain: a.t.TrustDomain}
	if answer.hidden = !a.t.Services[of].Published; answer.hidden {
		return answer
	}
	answer.Latent = a.latent(service)
	for _, p := range a.Principals() {
		if held := a.held(p, service); len(held) > 0 && len(p.Hosts) > 0 && a.refusedByGate(p, service) == "" {
			answer.Reaching = append(answer.Reaching, Reaching{p.ID, held, p.Hosts})
		}
	}
	for _, w := range a.Ways(service) {
		var acting []spiffe.ID
		for _, id := range w.Holders {
			if p := a.principals[id]; len(p.Hosts) > 0 && a.refusedByGate(p, service) == "" {
				acting = append(acting, id)
			}
		}
		if len(acting) > 0 {
			answer.ways = append(answer.ways, Way{w.Chain, acting, w.Ends})
		}
	}
	return answer
}
