package laws

import "slices"

type team struct {
	Users []string          `json:"users,omitempty"`
	Teams []string          `json:"teams,omitempty"`
	Roles []string          `json:"roles,omitempty"`
	Until map[string]string `json:"until,omitempty"`

	UsersUntil map[string]string `json:"usersUntil,omitempty"`
}

// teams puts users into teams, and teams and roles into earlier ones, so that there is no circle.
func (g generator) teams(c *cluster, users, roles []string) {
	if len(users) > 0 && g.IntN(3) == 0 {
		c.Teams = map[string]*team{}
		names := g.names("w", 1+g.IntN(3))
		for i, name := range names {
			c.Teams[name] = &team{append(g.some(users, 2), users[g.IntN(len(users))]), g.some(names[i+1:], 2), append(g.some(roles, 1), roles[g.IntN(len(roles))]), nil, nil}
		}
	}
	for i, name := range roles {
		if later := roles[i+1:]; len(later) > 0 && g.IntN(2) == 0 {
			c.Roles[name].Roles = append(g.some(later[1:], 1), later[0])
		}
	}
}

// has reports whether a user has a role, following the definition of the language.
func (c *cluster) has(user, role string) bool {
	if slices.Contains(c.Users[user].Roles, role) || live(c.Users[user].Until[role]) {
		return true
	}
	for name, of := range c.Teams {
		if (slices.Contains(of.Roles, role) || live(of.Until[role])) && c.in(user, name) {
			return true
		}
	}
	return false
}

// in reports whether a user is in a team.
func (c *cluster) in(user, team string) bool {
	_, in := c.member(user, team)
	return in
}

// member returns the end of a membership in a team, zero for none, and whether the user is in the
// team.
func (c *cluster) member(user, team string) (end int64, in bool) {
	of := c.Teams[team]
	if slices.Contains(of.Users, user) {
		return 0, true
	}
	if of.UsersUntil[user] != "" {
		end, in = seconds[of.UsersUntil[user]], true
	}
	for _, inner := range of.Teams {
		switch last, is := c.member(user, inner); {
		case is && last == 0:
			return 0, true
		case is:
			end, in = max(end, last), true
		}
	}
	return end, in
}
