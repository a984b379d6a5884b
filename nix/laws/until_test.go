package laws

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/spiffe"
)

// Topologies are evaluated at the first second of 1970.
const (
	sooner = "2027-01-31"
	later  = "2027-02-28T18:00Z"
)

func live(date string) bool { return date == sooner || date == later }

// seconds contains the two dates in the form of documents.
var seconds = map[string]int64{sooner: 1801353600, later: 1803837600}

// ends gives users, teams and services roles with an end.
func (g generator) ends(c *cluster, roles []string) {
	until := func(one int, has []string) map[string]string {
		role := roles[g.IntN(len(roles))]
		if g.IntN(one) > 0 || slices.Contains(has, role) {
			return nil
		}
		return map[string]string{role: []string{sooner, later}[g.IntN(2)]}
	}
	for _, name := range sorted(c.Users) {
		c.Users[name].Until = until(3, c.Users[name].Roles)
	}
	for _, name := range sorted(c.Teams) {
		of := c.Teams[name]
		of.Until = until(1, of.Roles)
		of.UsersUntil = map[string]string{}
		for _, user := range sorted(c.Users) {
			if g.IntN(3) == 0 && !slices.Contains(of.Users, user) {
				of.UsersUntil[user] = []string{sooner, later}[g.IntN(2)]
			}
		}
	}
	for _, name := range sorted(c.Hosts) {
		c.Hosts[name].Until = until(3, c.Hosts[name].Roles)
	}
	for _, name := range sorted(c.HostGroups) {
		c.HostGroups[name].Until = until(2, c.HostGroups[name].Roles)
	}
	for _, name := range sorted(c.Services) {
		c.Services[name].Until = until(3, c.Services[name].Roles)
	}
}

// held returns the roles of a service.
func (s *service) held() []string {
	return slices.AppendSeq(slices.Clone(s.Roles), maps.Keys(s.Until))
}

// end returns when a role of an identity ends, zero for never, and whether the identity has the
// role, following the definition of the language.
func (c *cluster) end(p principal, role string) (end int64, has bool) {
	by := func(last int64) {
		switch {
		case last == 0:
			end, has = 0, true
		case !has || end > 0:
			end, has = max(end, last), true
		}
	}
	given := func(roles []string, until map[string]string) {
		switch {
		case slices.Contains(roles, role):
			by(0)
		case until[role] != "":
			by(seconds[until[role]])
		}
	}
	id, err := spiffe.ParseID(p.id)
	if err != nil {
		panic(err)
	}
	if id.Kind() != spiffe.KindUser {
		if s := c.Services[id.Name()]; id.Kind() == spiffe.KindService && s != nil {
			given(s.Roles, s.Until)
			return end, has
		}
		if h := c.Hosts[id.Name()]; id.Kind() == spiffe.KindNode && h != nil && role != "node" && !strings.HasPrefix(role, outsideRole) {
			for _, of := range c.levels(h) {
				given(of.Roles, of.Until)
			}
			return end, has
		}
		return 0, slices.Contains(p.roles, role)
	}
	given(c.Users[id.Name()].Roles, c.Users[id.Name()].Until)
	for name, of := range c.Teams {
		last, in := c.member(id.Name(), name)
		switch {
		case in && last == 0:
			given(of.Roles, of.Until)
		case in && slices.Contains(of.Roles, role):
			by(last)
		case in && of.Until[role] != "":
			by(min(last, seconds[of.Until[role]]))
		}
	}
	return end, has
}

// TestEnds checks that access ends with the last end of the roles that lead to it, and never if one
// of them has none.
func TestEnds(t *testing.T) {
	total := 0
	for _, s := range samples(t) {
		principals := map[string]principal{}
		for _, p := range s.c.principals() {
			principals[p.id] = p
		}
		for host, m := range s.is.manifests(t) {
			for _, p := range m.Forwarder.Publish {
				for _, a := range p.Allow {
					who, ours := principals[a.ID.String()]
					if !ours || p.ID.Name() == spiffe.ControlService || p.ID.Name() == spiffe.CacheService {
						continue
					}
					want, last := int64(0), false
					roles := sorted(s.c.Roles)
					for _, o := range sorted(s.c.Outside) {
						roles = append(roles, outsideRole+o)
					}
					for _, role := range roles {
						if !s.c.may(role, p.ID.Name(), host, face(p.ID, p.Port)) {
							continue
						}
						switch end, has := s.c.end(who, role); {
						case has && end == 0:
							want, last = 0, true
						case has && !last:
							want = max(want, end)
						}
					}
					if got := a.Until.Seconds(); got != want {
						t.Errorf("%s: on %s %s ends at %d for %s, want %d", s, host, p.ID, got, a.ID, want)
					}
					if want > 0 {
						total++
					}
				}
			}
		}
	}
	if total < len(samples(t)) {
		t.Errorf("only %d ends", total)
	}
}
