package plan

import "cmp"

// login returns the right of a user to log in over SSH as an account of a host.
func login(a at) []fact { return a.endless(one(a.loginRight())) }

// loginRight returns the right that an element of a list of logins gives.
func (a at) loginRight() Right {
	return Right{a.id(a.up[1]["id"]), "log in as", shown(a.up[0]["account"]) + " at " + a.port(a.up[2])}
}

// hostKey returns the right of the holder of an SSH host key to answer callers of a service.
func hostKey(a at) []fact {
	service := a.port(a.up[0])
	var reach []Right
	for _, caller := range list(a.up[0]["callers"]) {
		reach = append(reach, Right{a.id(caller), "reach", service})
	}
	return one(Right{"SSH key " + fingerprint(text(a.v)), "answer as", "sshd of " + service}, reach...)
}

// logins describes a change of the accounts as which a caller of a service may log in.
func (c Change) logins(element string, rest []string) (noun, words string) {
	var accounts []string
	for _, l := range list(cmp.Or(c.After, c.Before)) { // all logins of a caller
		accounts = append(accounts, name(l))
	}
	accounts = append(accounts, rest[3:min(4, len(rest))]...)
	return "login", element + " lets " + beside(element, rest[1]) + " log in as " + some(accounts, 6) + ends(c)
}
