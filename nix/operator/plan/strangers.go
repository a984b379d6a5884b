package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
)

// comparedByPath is the reason why single rules of an ingress grant nothing. One rule may open what
// another rule restricts, so delta.strangers compares what all rules together permit.
const comparedByPath = "what the rules for strangers permit together is compared for each path"

// redirect returns the right of strangers to use a name that is redirected.
func redirect(a at) []fact {
	name := a.path[len(a.path)-1]
	return one(Right{"anyone", "come in through", "host " + a.host() + " as " + name + ", which leads to " + shown(a.v)})
}

// public is a public name that a host with an ingress serves.
type public struct {
	service, port string // the port is that of the service to which requests go without a rule
	rules         document.PublicRules
	issuer        string // issuer at which strangers must sign in; empty if they need not
}

// signedIn returns the words for strangers who pass the gate of an issuer.
func signedIn(who, issuer string) string {
	if issuer == "" {
		return who
	}
	return who + " who signs in at " + issuer
}

// gateOf returns the issuer at which strangers must sign in before they reach a service through an
// ingress. It is empty if they need not.
func gateOf(manifest, entry map[string]any) string {
	g := object(entry["gate"])
	if g == nil {
		return ""
	}
	for _, n := range list(manifest["needs"]) {
		if need := object(n); need["id"] == g["need"] {
			return shown(object(need["request"])["issuer"])
		}
	}
	return "an unknown issuer"
}

// tells returns the right of a caller to tell a service which person calls.
func tells(who, service string) []fact {
	return one(Right{who, "state", "which person calls " + service})
}

// gates records who may tell a service which person calls if the service has a gate only before or
// only after the change. Without a gate, the service gets the headers that its callers set.
func (d *delta) gates(was, is documents) error {
	published := [2]map[string]map[string]any{}
	a := [2]at{}
	for s, docs := range []documents{was, is} {
		var manifest map[string]any
		if err := read(docs[document.DocManifest], &manifest); err != nil {
			return err
		}
		a[s] = at{walk: &walk{root: manifest}}
		published[s] = map[string]map[string]any{}
		for _, v := range list(object(manifest["forwarder"])["publish"]) {
			entry := object(v)
			published[s][a[s].port(entry)+" "+shown(entry["protocol"])] = entry
		}
	}
	for s, entries := range published {
		for name, entry := range entries {
			other, both := published[1-s][name]
			if !both || entry["gate"] != nil || other["gate"] == nil {
				continue
			}
			for _, allowed := range list(entry["allow"]) {
				d.note(side(s), tells(a[s].id(object(allowed)["id"]), a[s].port(entry)))
			}
		}
	}
	return nil
}

// publicNames returns the public names that a host serves.
func publicNames(manifest map[string]any) (map[string]public, error) {
	names := map[string]public{}
	a := at{walk: &walk{root: manifest}}
	for _, v := range list(object(manifest["forwarder"])["reach"]) {
		entry := object(v)
		p := public{service: a.id(entry["id"]), port: a.port(entry), issuer: gateOf(manifest, entry)}
		if rules := entry["ingress"]; rules != nil {
			b, err := json.Marshal(rules)
			if err == nil {
				err = json.Unmarshal(b, &p.rules)
			}
			if err != nil {
				return nil, fmt.Errorf("rules for strangers to %s: %w", p.service, err)
			}
		}
		for _, name := range append(list(entry["tlsAliases"]), entry["tlsName"]) {
			if shown(name) != "" {
				names[shown(name)] = p
			}
		}
	}
	return names, nil
}

// to returns the port to which the ingress sends the requests that a decision permits.
func (p public) to(d document.Decision) string {
	if d.Port == "" {
		return p.port
	}
	return p.service + ":" + d.Port
}

// strangers records the paths of public names that strangers reach only before or only after the
// change.
func (d *delta) strangers(host string, was, is documents) error {
	var names [2]map[string]public
	for s, docs := range []documents{was, is} {
		var manifest map[string]any
		if err := read(docs[document.DocManifest], &manifest); err != nil {
			return err
		}
		var err error
		if names[s], err = publicNames(manifest); err != nil {
			return err
		}
	}
	all := maps.Clone(names[before])
	maps.Copy(all, names[after])
	for _, name := range slices.Sorted(maps.Keys(all)) {
		paths := map[string]bool{"/": true}
		for _, side := range names {
			for _, rule := range side[name].rules.Paths {
				paths[rule.Path] = true
			}
		}
		for s := range names {
			p, served := names[s][name]
			if !served {
				continue
			}
			other, both := names[1-s][name]
			for path := range paths {
				here := p.rules.At(path)
				there := document.Decision{Deny: true}
				if both {
					there = other.rules.At(path)
				}
				sameTarget := both && p.to(here) == other.to(there) && (other.issuer == "" || other.issuer == p.issuer)
				for _, who := range beyond(here, there, sameTarget) {
					d.note(side(s), p.open(host, name, path, signedIn(who, p.issuer), here, both))
				}
			}
		}
	}
	return nil
}

// beyond returns the strangers whom the first decision permits to come in and the second does not.
// If the decisions lead to different ports, beyond returns all strangers whom the first decision
// permits.
func beyond(here, there document.Decision, sameTarget bool) (who []string) {
	if here.Deny {
		return nil
	}
	covered := func(p netip.Prefix) bool {
		return slices.ContainsFunc(there.From, func(o netip.Prefix) bool { return o.Overlaps(p) && o.Bits() <= p.Bits() })
	}
	open := sameTarget && !there.Deny && len(there.From) == 0
	switch {
	case open:
	case len(here.From) == 0:
		who = append(who, "anyone")
	default:
		for _, p := range here.From {
			if !sameTarget || there.Deny || !covered(p) {
				who = append(who, "anyone in "+p.String())
			}
		}
	}
	return who
}

// open returns the rights of strangers at a path of a public name. There are none if the path is as
// open as the name and leads to the same port, because they follow from the rights at the name.
func (p public) open(host, name, path, who string, d document.Decision, both bool) []fact {
	target := p.to(d)
	whole := entrance(host, name, p.port)
	whole.Who = who
	if path == "/" && d.Port == "" {
		return one(whole) // publicName adds what anyone reaches
	}
	right := entrance(host, strings.TrimSuffix(name+path, "/"), target)
	right.Who = who
	facts := []fact{{Right: right}}
	if target == p.port {
		// A new name opens all of its paths.
		facts[0].because = []Right{whole}
		if !both {
			anyone := whole
			anyone.Who = signedIn("anyone", p.issuer)
			facts[0].because = append(facts[0].because, anyone)
		}
		return facts
	}
	if who == signedIn("anyone", p.issuer) {
		facts = append(facts, one(Right{who, "reach", target})...)
	}
	return facts
}
