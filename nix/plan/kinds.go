package plan

import "slices"

// kind is what needs of one kind grant. A kind that is not here grants its caller to fetch
// "its <kind>", and each field of its requests and settings is a right of its own: what
// nobody reads here cannot pass unseen. They are not data of the compiler's, which a change
// of a flake may bring along.
type kind struct {
	fields   []string                                           // of its requests that rights explains
	rights   func(caller string, request map[string]any) []fact // that a request comes with
	open     []string                                           // values of its answers that everyone may read
	settings map[string]func(a at) []fact                       // of its providers, by name
}

var kinds = map[string]kind{
	"cert": {
		fields: []string{"id"},
		rights: func(caller string, request map[string]any) []fact {
			if id := short(request["id"]); id != caller && id != "" {
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
		rights: func(caller string, request map[string]any) []fact {
			login := "database " + short(request["name"]) + " at " + short(request["server"])
			fetch := Right{caller, "log in at", login}
			facts := one(fetch)
			for _, with := range []Right{
				{"logins at " + login, "be in use for", lasting(request["rotate"], "ever")},
				{"logins at " + login, "overlap with another for", lasting(request["overlap"], "no time")},
			} {
				facts = append(facts, fact{Right: with, because: []Right{fetch}})
			}
			return facts
		},
		open:     []string{"database", "host", "port", "prefix", "user"},
		settings: map[string]func(a at) []fact{"servers": servers},
	},
	"federation": {
		fields: []string{"trustDomain"},
		rights: func(caller string, request map[string]any) []fact {
			return one(Right{"the federation provider", "vouch for", "identities of " + short(request["trustDomain"]) + " at " + caller}, join(caller))
		},
		open: []string{"bundle"},
		settings: map[string]func(a at) []fact{
			"refresh": func(at) []fact { return nil }, // how soon others read what is public
			"trusts":  trusts,
		},
	},
	"file": {
		fields: []string{"ref"},
		rights: func(caller string, request map[string]any) []fact {
			return one(Right{caller, "fetch", "file " + short(request["ref"])})
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
		rights: func(caller string, request map[string]any) []fact {
			id, issuer := short(request["id"]), "issuer "+short(request["issuer"])
			if request["id"] == nil {
				return one(Right{issuer, "vouch for", "tokens at " + caller}, join(caller))
			}
			facts := one(Right{caller, "act as", id})
			for _, audience := range list(request["audiences"]) {
				facts = append(facts, fact{Right: Right{issuer, "vouch for", id + " to audience " + short(audience)}})
			}
			return facts
		},
		open: []string{"jwks"},
		settings: map[string]func(a at) []fact{
			"generation": func(at) []fact { return nil }, // of keys, which lets nobody do more
			"issuer": func(a at) []fact {
				return one(Right{a.node(), "sign tokens as", "issuer " + short(a.v)})
			},
		},
	},
	"oidc": {
		fields: clientFields,
		rights: clientRights,
		open:   []string{"clientId", "issuer"},
		settings: map[string]func(a at) []fact{
			"issuer": func(a at) []fact {
				return one(Right{a.node(), "sign people in as", "issuer " + short(a.v)})
			},
			"registration": func(a at) []fact {
				return one(Right{a.node(), "register clients at", short(a.v)})
			},
			"registrar": func(a at) []fact {
				return one(Right{a.node(), "register clients by the API of", short(a.v)})
			},
			"ldap":     connectors,
			"upstream": connectors,
		},
	},
	"secret": {
		fields: []string{"generate", "length", "overlap", "rotate", "secret", "two"},
		rights: func(caller string, request map[string]any) []fact {
			name := "secret " + short(request["secret"])
			fetch := Right{caller, "fetch", name}
			facts := one(fetch)
			with := func(who, may, what string) {
				facts = append(facts, fact{Right: Right{who, may, what}, because: []Right{fetch}})
			}
			with(name, "be", "of form "+short(request["generate"])+", length "+short(request["length"]))
			with(name, "be in use for", lasting(request["rotate"], "ever"))
			with(name, "overlap with another for", lasting(request["overlap"], "no time"))
			if request["two"] != false {
				with(caller, "accept", "two at a time of "+name)
			}
			return facts
		},
		open: []string{"public"},
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
			"generation": func(at) []fact { return nil }, // of keys, which lets nobody do more
			"issuer": func(a at) []fact {
				return one(Right{a.node(), "sign tokens as", "issuer " + short(a.v)})
			},
		},
	},
}

// tokenRights are those of who has a token of a tenant, or the keys that verify one: every
// action on every object, and all of either where none is named.
func tokenRights(caller string, request map[string]any) []fact {
	tenant := "tenant " + short(request["tenant"])
	if request["id"] == nil {
		return one(Right{"issuer " + short(request["issuer"]), "vouch for", "tokens of " + tenant + " at " + caller}, join(caller))
	}
	facts := one(Right{caller, "act as", short(request["id"])})
	all := func(field, none string) []string {
		var named []string
		for _, v := range list(request[field]) {
			named = append(named, short(v))
		}
		if len(named) == 0 {
			named = []string{none}
		}
		return named
	}
	for _, action := range all("requested", "whatever is permitted") {
		for _, object := range all("resources", "all objects") {
			facts = append(facts, fact{Right: Right{short(request["id"]), "have of " + tenant, action + " on " + object}})
		}
	}
	return facts
}

// lasting is a number of seconds for people, with a word for none.
func lasting(v any, none string) string {
	n, ok := v.(float64)
	switch {
	case !ok || n < 0:
		return short(v)
	case n == 0:
		return none
	}
	return duration(seconds(n))
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

// request is what one caller may have of providers.
func (a at) request(caller string, of any) []fact {
	request := object(a.v)
	if request == nil {
		a.loosen(a.path, a.v)
	}
	k, ok := kinds[short(of)]
	isOwn := !ok && object(request["request"]) != nil && request["service"] != nil
	if isOwn {
		k.fields = own
	}
	a.rest(request, k.fields...)
	if isOwn {
		return ofOwn(caller, short(of), request)
	}
	if !ok {
		return one(Right{caller, "fetch", "its " + short(of)}, join(caller))
	}
	return k.rights(caller, request)
}

// readable is whether everyone may read a value of answers to a kind.
func readable(of any, value string) bool { return slices.Contains(kinds[short(of)].open, value) }
