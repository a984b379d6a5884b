package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// Latent is a way by which users reach a service only while a grant for a role is in force.
type Latent struct {
	Chain
	Users   []spiffe.ID `json:"users"`   // users who may request the role, sorted
	Approve []string    `json:"approve"` // teams whose users may approve a request
	Most    int         `json:"most"`    // longest time of a grant, in hours
}

// latent returns the ways to a service by roles that users can request. It leaves out users who act
// on no host, and those who hold the role without an end.
func (a *Access) latent(service string) (all []Latent) {
	return a.requestable(a.to(service))
}

// requestable returns those of the chains whose roles can be requested.
func (a *Access) requestable(chains []Chain) (all []Latent) {
	for _, c := range chains {
		r := a.t.Roles[c.Role].Request
		if r == nil {
			continue
		}
		l := Latent{Chain: c, Approve: r.Approve, Most: r.Most}
		for _, name := range r.Users {
			u := a.principals[a.t.Users[name].ID]
			if !slices.Contains(u.Roles, c.Role) || !u.until[c.Role].IsZero() {
				l.Users = append(l.Users, u.ID)
			}
		}
		if len(l.Users) > 0 {
			slices.SortFunc(l.Users, compareID)
			all = append(all, l)
		}
	}
	return all
}

// ownWays returns those of the ways that a user has.
func ownWays(all []Latent, user spiffe.ID) (own []Latent) {
	for _, l := range all {
		if slices.Contains(l.Users, user) {
			own = append(own, l)
		}
	}
	return own
}

// condition describes when the way exists, and how to get there.
func (l Latent) condition() string {
	return fmt.Sprintf("while a grant for %s is in force (ask: florctl access request %[1]s; approve: %s)", l.Role, strings.Join(l.Approve, ", "))
}
