package plan

// certificateRights returns the rights of a caller that requests the certificate of a public name,
// or that answers the CA's challenges for the name.
func certificateRights(a at, caller string, request map[string]any) []fact {
	names := list(request["names"])
	if len(names) == 0 {
		return one(Right{caller, "answer for", "orders of certificates for public names"})
	}
	issuer := "the ACME server"
	if request["internal"] != false {
		issuer = "the CA of names outside DNS"
	}
	var facts []fact
	for _, n := range names {
		name := shown(n)
		be := Right{caller, "be for strangers", name}
		facts = append(facts, fact{Right: be}, fact{Right: Right{issuer, "vouch for", name + " at " + caller}, because: []Right{be}})
		if request["shared"] != false {
			facts = append(facts, fact{Right: Right{"several hosts", "share", "the key of " + name}, because: []Right{be}})
		}
	}
	return facts
}

// certificateSettings contains the rules for settings about issuers and about how orders are
// proved.
var certificateSettings = map[string]func(a at) []fact{
	"contact": func(at) []fact { return nil }, // address for mail from the CA
	"directory": func(a at) []fact {
		return one(Right{"ACME server " + shown(a.v), "issue", "certificates for public names to " + a.node()})
	},
	"dns": func(a at) []fact {
		if shown(a.v) == "" {
			return nil
		}
		return one(Right{a.node(), "change", "zones of public names, by " + shown(a.v)})
	},
	"internal": func(a at) (facts []fact) {
		for _, domain := range list(a.v) {
			facts = append(facts, fact{Right: Right{a.node(), "issue", "certificates for names below " + shown(domain)}})
		}
		return facts
	},
}
