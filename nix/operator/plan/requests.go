package plan

// byGrant returns the words for a right that exists while a grant for a role is in force.
func byGrant(role any) string { return ", while a grant for " + shown(role) + " is in force," }

// latent returns the right of a user to reach a service while a grant is in force.
func latent(a at) []fact {
	return one(Right{a.id(a.v), "reach" + byGrant(a.up[0]["role"]), a.port(a.up[1])})
}

// latentLogin returns the right of a user to log in over SSH while a grant is in force.
func latentLogin(a at) []fact {
	return one(Right{a.id(a.up[0]["id"]), "log in" + byGrant(a.up[0]["role"]) + " as", shown(a.v) + " at " + a.port(a.up[1])})
}

// grantLength returns the longest time of a grant for a role. A longer time is a wider right.
func grantLength(a at) []fact {
	hours, ok := a.v.(float64)
	if !ok {
		a.loosen(a.path, a.v)
		return nil
	}
	return []fact{lasting(Right{Who: "a grant for role " + a.role(), May: "be in force for"}, hours*3600, ever)}
}

// approver returns the right of a user to sign grants for a role.
func approver(a at) []fact {
	return one(Right{a.id(a.v), "approve", "requests for role " + a.role()})
}

// approvalKey returns the right of the holder of an SSH key to approve as a user.
func approvalKey(a at) []fact {
	return one(Right{"SSH key " + fingerprint(text(a.v)), "approve as", a.id(a.up[0]["id"])})
}

// requester returns the right of a user to request a role.
func requester(a at) []fact {
	return one(Right{a.id(a.v), "request", "role " + a.role()})
}

// role returns the role of an entry of requests.
func (a at) role() string { return a.path[1] }
