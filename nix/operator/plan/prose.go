package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

func (c Change) mark() string {
	switch {
	case c.Path[len(c.Path)-1] == "until": // the end of something that remains
		return "~"
	case c.Before == nil:
		return "+"
	case c.After == nil:
		return "-"
	}
	return "~"
}

// prose describes a change in words. It also returns the noun that names changes of this type. IDs
// in the host's own trust domain are shortened.
func (c Change) prose(domain string) (noun, words string) {
	var value string
	switch {
	case c.Before == nil:
		value = compact(c.After)
	case c.After == nil:
		value = compact(c.Before)
	default:
		value = compact(c.Before) + " → " + compact(c.After)
	}
	section, element, rest := c.place()
	whole := element != "" && len(rest) == 0
	at := strings.Join(rest, ".")
	switch {
	case section == "needs" && whole:
		noun, words = "need", "need "+element+from(c)
	case section == "needs" && element != "":
		noun, words = "change of a need", fmt.Sprintf("need %s, %s: %s", element, at, value)
	case section == "publish" && whole:
		noun, words = "published service", "publishes "+element
	case section == "publish" && len(rest) > 2 && rest[0] == "allow" && rest[2] == "logins":
		noun, words = c.logins(element, rest)
	case section == "publish" && len(rest) > 1 && rest[0] == "allow":
		noun, words = "permission", element+" allows "+beside(element, rest[1])+ends(c)
	case section == "publish" && len(rest) > 1 && rest[0] == "latent":
		noun, words = "permission by grant", element+" allows "+beside(element, rest[1])+", while a grant is in force"
		if len(rest) > 2 {
			words += ", " + strings.Join(rest[2:3], "") + ": " + unquote.Replace(value)
		}
	case section == "reach" && len(rest) > 0 && rest[0] == "latent":
		noun, words = "caller by grant", "reaches "+element+" as "+value+", while a grant is in force"
	case section == "requests":
		noun, words = "request for a role", strings.Join(append([]string{"grants for role " + element}, rest...), ", ")+": "+value
	case section == "publish" && len(rest) > 0 && rest[0] == "gate":
		noun, words = "gate", "serves only users at "+element
		if len(rest) > 1 {
			words = element + " learns from " + unquote.Replace(value) + " which person signed in"
		}
	case section == "publish" && len(rest) > 0 && rest[0] == "opaqueName":
		noun, words = "name for relays", "is called "+value+" for "+element+" where relays see it"
	case section == "publish" && len(rest) > 0 && rest[0] == "entrances":
		noun, words = "entrance", element+" learns the addresses of strangers from "+unquote.Replace(value)
	case section == "publish" && len(rest) > 0 && rest[0] == "record":
		noun, words = c.recorded(element, rest, value)
	case section == "publish" && element != "":
		noun, words = "change of a published service", fmt.Sprintf("%s, %s: %s", element, at, value)
	case section == "limits" && whole:
		noun, words = "limit", "has limits for "+element
	case section == "limits" && element != "":
		noun, words = "limit", fmt.Sprintf("limits of %s, %s: %s", element, rest[len(rest)-1], value)
	case section == "reach" && whole:
		noun, words = "reachable service", "reaches "+element+publicly(c)
	case section == "reach" && len(rest) > 0 && rest[0] == "callers":
		noun, words = "caller", "reaches "+element+" as "+value
	case section == "relays" || section == "uplinks" || section == "relay":
		noun, words = c.relayed(section, element, rest, value)
	case section == "entries":
		noun, words = c.entered(element, rest, value)
	case section == "meet":
		noun, words = "direct connection", "may connect directly with those it reaches through relays, who learn its address"
	case section == "reach" && len(rest) > 0 && rest[0] == "via":
		noun, words = "path", "reaches "+element+" by "+by(c, value)
	case section == "reach" && len(rest) > 0 && rest[0] == "opaqueName":
		noun, words = "name for relays", "calls "+element+" "+value+" where relays see it"
	case section == "reach" && len(rest) > 0 && rest[0] == "endpoints":
		noun, words = "endpoint", "reaches "+element+" at "+addresses(c, value)
	case section == "reach" && len(rest) > 0 && rest[0] == "transport":
		noun, words = "transport", "reaches "+element+" over "+value
	case section == "transport":
		noun, words = "transport", "listens over "+value
	case section == "reach" && len(rest) > 0 && (rest[0] == "tlsName" || rest[0] == "tlsAliases"):
		noun, words = "public name", "takes in strangers for "+element+" as "+unquote.Replace(value)
	case section == "reach" && len(rest) > 0 && rest[0] == "ingress":
		noun, words = "rule for strangers", strings.Join(append([]string{"rules for strangers to " + element}, rest[1:]...), ", ")+": "+value
	case section == "reach" && len(rest) > 0 && rest[0] == "gate":
		noun, words = "sign-in of strangers", "has strangers sign in before they reach "+element
		if len(rest) > 1 {
			words = fmt.Sprintf("sign-in of strangers to %s, %s: %s", element, rest[1], value)
		}
	case section == "reach" && len(rest) > 0 && rest[0] == "redirects":
		noun, words = "redirect", strings.Join(append([]string{"redirects to " + element}, rest[1:]...), ", ")+": "+value
	case section == "reach" && len(rest) > 0 && rest[0] == "hostKeys":
		noun, words = "SSH host key", "knows for "+element+" the host key "+unquote.Replace(value)
	case section == "reach" && len(rest) > 0 && rest[0] == "remote":
		noun, words = "protocol of sessions", "opens "+element+" over "+value
	case section == "reach" && len(rest) > 0 && rest[0] == "recorded":
		noun, words = "recording", "tells people that sessions at "+element+" are recorded"
	case section == "reach" && len(rest) > 0 && rest[0] == "aliases":
		noun, words = "alias", "calls "+element+" "+unquote.Replace(value)+" too"
	case section == "listen":
		noun, words = "address to listen on", "listens on "+value
	case section == "grants" && whole:
		noun, words = "grant", "grants "+strings.Replace(element, " ", " its need ", 1)
	case section == "grants" && element != "":
		noun, words = "change of a grant", fmt.Sprintf("grants %s, %s: %s", strings.Replace(element, " ", " its need ", 1), at, value)
	case section == "callers" && whole:
		noun, words = "caller", "knows who acts as "+element
	case section == "callers" && element != "":
		noun, words = "account", fmt.Sprintf("who acts as %s, %s: %s", element, at, value)
	case section == "socks" && whole:
		noun, words = "SOCKS5 listener", "has a SOCKS5 listener for "+element
	case section == "providers" && whole:
		noun, words = "provider", "knows provider "+element
	case section == "providers" && len(rest) == 1:
		noun, words = "provider", "knows the "+rest[0]+" provider of "+element
	case section == "providers" && len(rest) > 1 && rest[1] == "addresses":
		noun, words = "address of a provider", "calls the "+rest[0]+" provider of "+element+" at "+value
	case section == "operators" && whole:
		noun, words = "operator", "serves operator "+element
	case section == "operators" && element != "":
		noun, words = "operator", fmt.Sprintf("operator %s, %s: %s", element, at, value)
	case section == "cache" && whole:
		noun, words = "caller of the binary cache", "serves its binary cache to "+element
	case section == "cache" && element != "":
		noun, words = "caller of the binary cache", fmt.Sprintf("caller %s of its binary cache, %s: %s", element, at, value)
	case section == "devices" && whole:
		noun, words = "device", "knows "+element
	case section == "federation" && len(rest) == 0:
		noun, words = "foreign trust domain", "verifies identities of "+domains(element, c)
	case section == "kinds" && element == "federation" && len(rest) > 2 && rest[0] == "trusts":
		noun, words = "foreign trust domain", fmt.Sprintf("fetches the bundle of %s, %s: %s", rest[1], strings.Join(rest[2:], "."), value)
	case section == "kinds" && element == "federation" && len(rest) > 0 && rest[0] == "trusts":
		noun, words = "foreign trust domain", "fetches the bundle of "+domains(strings.Join(rest[1:], "."), c)
	case section == "units":
		noun, words = "unit", "runs "+element
	case section == "instance":
		noun, words = "instance", "directories, units and accounts: "+value
	case section == "kinds" && whole:
		noun, words = "kind", "provides "+element
	default:
		noun, words = "other change", strings.Join(c.Path, ".")+": "+value
	}
	own := regexp.MustCompile(`(^|[\s"\[,(.])spiffe://` + regexp.QuoteMeta(domain) + "/")
	return noun, own.ReplaceAllString(words, "$1")
}

// follows reports whether a change follows from the change of a need, because its unit exists only
// for this need.
func (c Change) follows() bool {
	section, element, _ := c.place()
	return section == "units" && strings.HasPrefix(element, "need-")
}

// relativeTo removes the name of the host from a sentence. Hosts with the same change then have the
// same sentence, and can be grouped.
func relativeTo(host, words string) string {
	if host == "" || !strings.Contains(words, host) {
		return words
	}
	words = strings.ReplaceAll(words, "service/"+host+"/", "its own service/")
	node := regexp.MustCompile(`\bnode/` + regexp.QuoteMeta(host) + `($|[^a-z0-9-])`)
	return node.ReplaceAllString(words, "its node$1")
}

// place splits the path of a change into three parts: the section of the document, the element of
// the section, and the rest.
func (c Change) place() (section, element string, rest []string) {
	rest = c.Path
	if len(rest) > 1 && rest[0] == "forwarder" {
		rest = rest[1:]
	}
	if len(rest) > 0 {
		section, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 {
		element, rest = rest[0], rest[1:]
	}
	return section, element, rest
}

// unquote replaces the JSON syntax of a list of names with commas.
var unquote = strings.NewReplacer("[", "", "]", "", `"`, "", ",", ", ")

// idPrefix matches the beginning of an ID, with its trust domain.
var idPrefix = regexp.MustCompile(`spiffe://[^/]+/`)

// from describes the kind and the providers of a need.
func from(c Change) string {
	need, ok := c.After.(map[string]any)
	if !ok {
		return ""
	}
	var hosts []string
	if list, ok := need["providers"].([]any); ok {
		for _, h := range list {
			hosts = append(hosts, fmt.Sprint(h))
		}
	}
	return fmt.Sprintf(" (%v from %s)", need["kind"], some(hosts, 4))
}

// addresses returns the addresses of a forwarder if a change adds or removes them.
func addresses(c Change, value string) string {
	list, ok := cmp.Or(c.After, c.Before).([]any)
	if !ok || c.Before != nil && c.After != nil {
		return value
	}
	var words []string
	for _, a := range list {
		words = append(words, compact(a))
	}
	return strings.Join(words, " or ")
}

// publicly returns the public name that an ingress serves for a service.
func publicly(c Change) string {
	if reach, ok := cmp.Or(c.After, c.Before).(map[string]any); ok && reach["tlsName"] != nil {
		names := []string{fmt.Sprint(reach["tlsName"])}
		if others, ok := reach["tlsAliases"].([]any); ok {
			for _, name := range others {
				names = append(names, fmt.Sprint(name))
			}
		}
		return ", for strangers as " + strings.Join(names, ", ")
	}
	return ""
}

// hostOf returns the host of a principal or an account. It returns "" if the principal is on
// several hosts.
func hostOf(who string) string {
	kind, name, _ := strings.Cut(who, "/")
	host, _, ofHost := strings.Cut(name, "/")
	_, on, account := strings.Cut(who, " on ")
	switch {
	case kind == "node" || ofHost:
		return host
	case account:
		return on
	}
	return ""
}

// sentences combines rights that have the same holders, or the same object, in one sentence. If a
// right exists on several hosts, each host may have an object of its own.
func sentences(rights []Right, may string) []string {
	type deed struct{ may, what string }
	who := map[deed][]string{}
	var deeds []deed
	said := map[deed]string{}
	for _, r := range rights {
		d := deed{r.May, relativeTo(hostOf(r.Who), r.What)}
		said[d] = d.what
		if who[d] == nil {
			deeds = append(deeds, d)
		}
		who[d] = append(who[d], r.Who)
		if len(who[d]) == 1 {
			said[d] = r.What
		}
	}
	type group struct{ may, who string }
	what := map[group][]string{}
	var groups []group
	for _, d := range deeds {
		g := group{d.may, strings.Join(who[d], "\n")}
		if what[g] == nil {
			groups = append(groups, g)
		}
		what[g] = append(what[g], said[d])
	}
	var all []string
	for _, g := range groups {
		all = append(all, fmt.Sprintf("%s %s %s %s", some(strings.Split(g.who, "\n"), 4), may, g.may, some(what[g], 6)))
	}
	return all
}

// some joins at most n names for use in a sentence.
func some(names []string, n int) string {
	switch {
	case len(names) == 0:
		return "nobody"
	case len(names) == 1:
		return names[0]
	case len(names) > n+1:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// prose describes the hosts on which the service ran before and will run after the change. If there
// are many hosts, it describes only the differences.
func (m Move) prose() string {
	const few = 6
	if max(len(m.Before), len(m.After)) <= few+1 {
		return fmt.Sprintf("service/%s: %s → %s", m.Service, place(m.Before), place(m.After))
	}
	words := fmt.Sprintf("service/%s: %d → %d hosts", m.Service, len(m.Before), len(m.After))
	if came := without(m.After, m.Before); len(came) > 0 {
		words += ", comes to " + some(came, few)
	}
	if left := without(m.Before, m.After); len(left) > 0 {
		words += ", leaves " + some(left, few)
	}
	return words
}

func place(hosts []string) string {
	if len(hosts) == 0 {
		return "nowhere"
	}
	return some(hosts, len(hosts))
}

// without returns the elements of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(e string) bool { return slices.Contains(b, e) })
}
