package plan

import "slices"

// kind describes the rights that needs of one kind grant. If a kind has no description, its caller
// gets the right to fetch "its <kind>", and every field of its requests and settings is a right of
// its own, so that nothing is overlooked. The descriptions are in Go and not in the compiler's
// output, because a change of a flake could alter that output.
type kind struct {
	fields   []string                                                 // fields of requests that rights explains
	rights   func(a at, caller string, request map[string]any) []fact // rights that a request includes
	open     []string                                                 // values of answers that everyone may read
	settings map[string]func(a at) []fact                             // settings of its providers, by name
}

var kinds = map[string]kind{
	"cert": {
		fields: []string{"id"},
		rights: func(a at, caller string, request map[string]any) []fact {
			if id := a.id(request["id"]); id != caller && id != "" {
				return one(Right{caller, "act as", id})
			}
			return one(join(caller))
		},
		open: []string{"svid", "bundle"},
		settings: map[string]func(a at) []fact{"lifetime": func(a at) []fact {
			n, ok := a.v.(float64)
			if !ok {
				n = ever
			}
			return []fact{{Right: Right{May: "be valid for", Who: "what " + a.node() + " issues"}, seconds: int64(n), because: []Right{{a.node(), "provide", a.path[1]}}}}
		}},
	},
	"database": {
		fields: []string{"name", "overlap", "rotate", "server"},
		rights: func(a at, caller string, request map[string]any) []fact {
			login := "database " + shown(request["name"]) + " at " + shown(request["server"])
			fetch := Right{caller, "log in at", login}
			facts := one(fetch)
			return append(facts,
				lasting(Right{Who: "logins at " + login, May: "be in use for"}, request["rotate"], ever, fetch),
				lasting(Right{Who: "logins at " + login, May: "overlap with another for"}, request["overlap"], 0, fetch))
		},
		open:     []string{"database", "host", "port", "prefix", "user"},
		settings: map[string]func(a at) []fact{"servers": servers},
	},
	"federation": {
		fields: []string{"trustDomain"},
		rights: func(a at, caller string, request map[string]any) []fact {
			return one(Right{"the federation provider", "vouch for", "identities of " + shown(request["trustDomain"]) + " at " + caller}, join(caller))
		},
		open: []string{"bundle"},
		settings: map[string]func(a at) []fact{
			"refresh": refresh,
			"trusts":  trusts,
		},
	},
	"file": {
		fields: []string{"ref"},
		rights: func(a at, caller string, request map[string]any) []fact {
			return one(Right{caller, "fetch", "file " + shown(request["ref"])})
		},
	},
	"git": {
		fields:   []string{"access", "account", "forge", "lifetime", "repositories"},
		rights:   gitRights,
		open:     []string{"url", "user"},
		settings: map[string]func(a at) []fact{"forges": forges},
	},
	"jwt": {
		fields: []string{"audiences", "id", "issuer"},
		rights: func(a at, caller string, request map[string]any) []fact {
			id, issuer := a.id(request["id"]), "issuer "+shown(request["issuer"])
			if request["id"] == nil {
				return one(Right{issuer, "vouch for", "tokens at " + caller}, join(caller))
			}
			facts := one(Right{caller, "act as", id})
			for _, audience := range list(request["audiences"]) {
				facts = append(facts, fact{Right: Right{issuer, "vouch for", id + " to audience " + shown(audience)}})
			}
			return facts
		},
		open: []string{"jwks"},
		settings: map[string]func(a at) []fact{
			"generation": func(at) []fact { return nil }, // generation of keys, which grants nothing
			"issuer": func(a at) []fact {
				return one(Right{a.node(), "sign tokens as", "issuer " + shown(a.v)})
			},
		},
	},
	"oidc": {
		fields: clientFields,
		rights: clientRights,
		open:   []string{"clientId", "issuer"},
		settings: map[string]func(a at) []fact{
			"issuer": func(a at) []fact {
				return one(Right{a.node(), "sign people in as", "issuer " + shown(a.v)})
			},
			"registration": func(a at) []fact {
				return one(Right{a.node(), "register clients at", shown(a.v)})
			},
			"registrar": func(a at) []fact {
				return one(Right{a.node(), "register clients by the API of", shown(a.v)})
			},
			"ldap":     connectors,
			"upstream": connectors,
		},
	},
	"secret": {
		fields: []string{"generate", "length", "overlap", "rotate", "secret", "two"},
		rights: func(a at, caller string, request map[string]any) []fact {
			name := "secret " + shown(request["secret"])
			fetch := Right{caller, "fetch", name}
			facts := one(fetch)
			if request["two"] != false {
				facts = append(facts, one(Right{caller, "accept", "two at a time of " + name}, fetch)...)
			}
			return append(facts,
				fact{Right: Right{name, "be", "of form " + shown(request["generate"])}, because: []Right{fetch}},
				atLeast(name, request["length"], fetch),
				lasting(Right{Who: name, May: "be in use for"}, request["rotate"], ever, fetch),
				lasting(Right{Who: name, May: "overlap with another for"}, request["overlap"], 0, fetch))
		},
		open: []string{"public"},
	},
	"ssh": {
		fields: []string{"id"},
		rights: func(a at, caller string, request map[string]any) []fact {
			if request["id"] == nil {
				return one(Right{"the ssh provider", "vouch for", "SSH logins at " + caller}, join(caller))
			}
			return one(Right{caller, "log in with SSH certificates as", a.id(request["id"])})
		},
		open: []string{"ca", "certificate"},
		settings: map[string]func(a at) []fact{
			"generation": func(at) []fact { return nil }, // generation of keys, which grants nothing
			"lifetime": func(a at) []fact {
				valid := Right{Who: "SSH certificates that " + a.node() + " issues", May: "be valid for"}
				return []fact{lasting(valid, a.v, ever, Right{a.node(), "provide", a.path[1]})}
			},
		},
	},
	"tls": {
		fields:   []string{"internal", "names", "shared"},
		rights:   certificateRights,
		open:     []string{"certificate", "thumbprint"},
		settings: certificateSettings,
	},
	"token": {
		fields: []string{"id", "issuer", "requested", "resources", "tenant"},
		rights: tokenRights,
		open:   []string{"jwks"},
		settings: map[string]func(a at) []fact{
			"generation": func(at) []fact { return nil }, // generation of keys, which grants nothing
			"issuer": func(a at) []fact {
				return one(Right{a.node(), "sign tokens as", "issuer " + shown(a.v)})
			},
			"tenants": tenants,
		},
	},
}

// withSettings adds rules for the settings of kinds.
func withSettings(rules map[string]rule) map[string]rule {
	for name, k := range kinds {
		of := "policy.kinds." + name
		for setting, grants := range k.settings {
			rules[of], rules[of+"."+setting] = rules["policy.kinds.*"], rule{grants: grants}
		}
	}
	return rules
}

// request returns the rights that a caller gets through a request to providers.
func (a at) request(caller string, of any) []fact {
	request := object(a.v)
	if request == nil {
		a.loosen(a.path, a.v)
	}
	k, ok := kinds[shown(of)]
	isOwn := !ok && object(request["request"]) != nil && request["service"] != nil
	if isOwn {
		k.fields = own
	}
	a.rest(request, k.fields...)
	if isOwn {
		return ofOwn(a, caller, shown(of), request)
	}
	if !ok {
		return one(Right{caller, "fetch", "its " + shown(of)}, join(caller))
	}
	return k.rights(a, caller, request)
}

// readable reports whether everyone on the host may read a value in the answers to needs of a kind.
func readable(of any, value string) bool { return slices.Contains(kinds[shown(of)].open, value) }
