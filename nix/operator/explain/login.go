package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// Login names a Unix account that can be reached over SSH at a service. An example is the account
// root at the service shell@forge.
type Login struct {
	Account string `json:"account"`
	Service string `json:"service"`
}

// Login parses the name of an account at an SSH service, such as "root@shell.forge". If the name is
// that of a service, such as "shell@forge", or unknown, ok is false.
func (a *Access) Login(name string) (l Login, ok bool) {
	if _, err := a.Service(name); err == nil {
		return Login{}, false
	}
	account, service, _ := strings.Cut(name, "@")
	found, err := a.Service(service)
	return Login{account, found}, account != "" && err == nil
}

// LoginExplanation tells whether a user may log in to an account at an SSH service, and why. The
// user needs a role that permits the login, and must reach the service.
type LoginExplanation struct {
	Account string `json:"account"`
	LogsIn  bool   `json:"logsIn"`
	// Permits lists the roles of the user that permit the login.
	Permits []Chain `json:"permits"`
	// Others lists the roles that permit the login, and their holders. It is set only if no role of
	// the user permits it.
	Others []Way `json:"others"`
	// Latent lists the roles that permit the login while a grant is in force.
	Latent []Latent `json:"latent,omitempty"`
	// Reach explains whether the user reaches the service.
	Reach Explanation `json:"reach"`

	isSSH bool // the service is an SSH service
}

// ExplainLogin explains why a principal may or may not log in to an account at an SSH service.
func (a *Access) ExplainLogin(p Principal, l Login) LoginExplanation {
	of, _ := a.target(l.Service)
	chains := a.permitting(l)
	e := LoginExplanation{Account: l.Account, Permits: p.held(chains), Others: []Way{}, Reach: a.Explain(p, l.Service), isSSH: a.t.Services[of].Protocol == "ssh"}
	if p.ID.Kind() != spiffe.KindUser {
		e.Permits = []Chain{}
	}
	if len(e.Permits) == 0 {
		e.Latent = ownWays(a.requestable(chains), p.ID)
	}
	e.LogsIn = len(e.Permits) > 0 && e.Reach.Allowed
	if len(e.Permits) == 0 {
		for _, c := range chains {
			e.Others = append(e.Others, a.way(c, a.users(c.Role)))
		}
	}
	return e
}

// permitting returns a chain for each role that permits a login, sorted by role.
func (a *Access) permitting(l Login) (chains []Chain) {
	for _, role := range slices.Sorted(maps.Keys(a.t.Roles)) {
		logins := a.t.Roles[role].Logins
		for _, f := range a.faces(l.Service) {
			if slices.Contains(logins[f.ID], l.Account) {
				chains = append(chains, Chain{Role: role})
				break
			}
		}
	}
	return chains
}

// users returns the users who hold a role. Nodes and services do not log in.
func (a *Access) users(role string) []spiffe.ID {
	return slices.DeleteFunc(slices.Clone(a.holders[role]), func(id spiffe.ID) bool { return id.Kind() != spiffe.KindUser })
}

// LoginAnswer lists the users who may log in to an account at an SSH service and also reach the
// service.
type LoginAnswer struct {
	Login
	Users []spiffe.ID `json:"users"` // sorted
	// Latent lists the roles that permit the login while a grant is in force.
	Latent []Latent `json:"latent,omitempty"`
	// Sessions describes the sessions at the service. It is nil if people open none there.
	Sessions *Sessions `json:"sessions,omitempty"`
	ways     []Way
	domain   string
	nodes    int
}

// WhoCanLogIn returns the users who may log in to an account at an SSH service.
func (a *Access) WhoCanLogIn(l Login) LoginAnswer {
	of, _ := a.target(l.Service)
	answer := LoginAnswer{Login: l, Users: []spiffe.ID{}, Latent: a.requestable(a.permitting(l)), Sessions: sessions(a.t.Services[of]), domain: a.t.TrustDomain, nodes: len(a.t.Hosts)}
	reaches := func(id spiffe.ID) bool { return a.Explain(a.principals[id], l.Service).Allowed }
	for _, c := range a.permitting(l) {
		users := slices.DeleteFunc(a.users(c.Role), func(id spiffe.ID) bool { return !reaches(id) })
		if len(users) > 0 {
			answer.ways = append(answer.ways, a.way(c, users))
			answer.Users = append(answer.Users, users...)
		}
	}
	slices.SortFunc(answer.Users, compareID)
	answer.Users = slices.Compact(answer.Users)
	return answer
}

// String returns the explanation as text for people.
func (e LoginExplanation) String() string {
	var b strings.Builder
	who, where := called(e.Reach.Principal, e.Reach.domain), e.Account+" at "+service(e.Reach.Service, e.Reach.domain)
	switch {
	case e.LogsIn:
		fmt.Fprintf(&b, "%s may log in as %s\n", who, where)
	default:
		fmt.Fprintf(&b, "%s may not log in as %s\n", who, where)
	}
	for _, c := range e.Permits {
		fmt.Fprintf(&b, "  %s → %s permits the login\n", who, c)
	}
	for _, l := range e.Latent {
		fmt.Fprintf(&b, "  but %s → %s permits the login, %s\n", who, l.Chain, l.condition())
	}
	for _, w := range e.Others {
		fmt.Fprintf(&b, "  %s permits the login, held by %s\n", w.Chain, holders(w, e.Reach.nodes, e.Reach.domain))
	}
	switch {
	case len(e.Permits) > 0:
	case !e.isSSH:
		b.WriteString("  people log in at services with the protocol \"ssh\" only\n")
	case e.Reach.Principal.Kind() != spiffe.KindUser:
		b.WriteString("  only users log in\n")
	case len(e.Others) > 0:
		fmt.Fprintf(&b, "to permit it, give %s one of these roles\n", who)
	default:
		fmt.Fprintf(&b, "  no role permits the login\nto permit it, write roles.<name>.logins.%q = [ %q ]; and give %s that role\n", e.Reach.Service, e.Account, who)
	}
	return b.String() + e.Reach.String()
}

// String returns the answer as text for people.
func (a LoginAnswer) String() string {
	what := fmt.Sprintf("log in as %s at %s", a.Account, service(a.Service, a.domain))
	var latent strings.Builder
	for _, l := range a.Latent {
		fmt.Fprintf(&latent, "  %s: %s, %s\n", l.Chain, Way{}.listed(l.Users, a.domain), l.condition())
	}
	if len(a.Users) == 0 && latent.Len() > 0 {
		return fmt.Sprintf("nobody may %s without a grant\n%s%s", what, latent.String(), a.Sessions)
	}
	if len(a.Users) == 0 {
		return fmt.Sprintf("nobody may %s\n", what)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s may %s\n", plural(len(a.Users), "user"), what)
	for _, w := range a.ways {
		fmt.Fprintf(&b, "  %s: %s\n", w.Chain, holders(w, a.nodes, a.domain))
	}
	return b.String() + latent.String() + a.Sessions.String()
}
