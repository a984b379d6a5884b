package plan

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// beside formats the second ID for display next to the first. It includes the trust domain only if
// the trust domains of the two differ.
func beside(id, other string) string {
	a, b := idPrefix.FindString(id), idPrefix.FindString(other)
	if a == b || a == "" {
		return other
	}
	return strings.TrimPrefix(other, b) + " of " + strings.TrimSuffix(strings.TrimPrefix(b, "spiffe://"), "/")
}

// domains returns the foreign trust domains that a change affects. This is the named domain or, if
// none is named, all domains in the lists before and after the change.
func domains(named string, c Change) string {
	var all []string
	for _, v := range append(list(c.Before), list(c.After)...) {
		all = append(all, text(object(v)["trustDomain"]))
	}
	if named != "" {
		all = append(all, named)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// bundle returns the rights of the keys in the bundle of a foreign trust domain to vouch for
// identities of the domain. An invalid bundle counts as a single right.
func bundle(domain string, v any) (facts []fact) {
	var b struct {
		Keys []struct {
			Use, Kid string
			X5c      []string
		}
	}
	add := func(who string) {
		facts = append(facts, fact{Right: Right{who, "vouch for", "every identity of " + domain}})
	}
	if json.Unmarshal([]byte(text(v)), &b) != nil || len(b.Keys) == 0 {
		add("bundle " + certificate([]byte(text(v))))
	}
	for _, k := range b.Keys {
		if len(k.X5c) == 0 {
			raw, _ := json.Marshal(k)
			add("key " + k.Kid + " " + certificate(raw))
		}
		for _, c := range k.X5c {
			der, err := base64.StdEncoding.DecodeString(c)
			if err != nil {
				der = []byte(c)
			}
			add("root " + certificate(der))
		}
	}
	return facts
}

// trusts returns the rights that follow from the foreign bundles that a provider fetches, and from
// the sources of these bundles.
func trusts(a at) (facts []fact) {
	for _, v := range list(a.v) {
		t := object(v)
		a.rest(t, "name", "trustDomain", "endpoint", "endpointID", "profile", "endpointRoots", "bundle")
		domain := shown(t["trustDomain"])
		for _, who := range endpoint(t) {
			facts = append(facts, one(Right{who + " at " + text(t["endpoint"]), "hand out", "the bundle of " + domain + " to " + a.node()})...)
		}
		facts = append(facts, bundle(domain, t["bundle"])...)
	}
	return facts
}

// endpoint names who is trusted at a bundle endpoint: a SPIFFE ID, or CAs.
func endpoint(t map[string]any) (who []string) {
	if t["profile"] != "https_web" {
		return []string{shown(t["endpointID"])}
	}
	for _, pem := range list(t["endpointRoots"]) {
		for _, name := range certificates(text(pem)) {
			who = append(who, "who has a certificate of "+name)
		}
	}
	if who == nil {
		who = []string{"who has a certificate of a public CA"}
	}
	return who
}

// federates returns the rights of processes to verify foreign identities through the Workload API.
func federates(a at) []fact {
	return one(Right{"who acts as " + a.id(a.up[0]["id"]) + " on " + a.host(), "verify", "identities of " + shown(a.v)}, a.holds(a.up[0]["id"]))
}
