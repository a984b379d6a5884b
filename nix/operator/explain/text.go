package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
)

// String returns the explanation as text for people.
func (e Explanation) String() string { return e.chain() + e.Edge.String() }

func (e Explanation) chain() string {
	var b strings.Builder
	who, what := called(e.Principal, e.domain), service(e.Service, e.domain)
	if e.Allowed {
		fmt.Fprintf(&b, "%s reaches %s\n", who, what)
		for _, c := range e.Chains {
			fmt.Fprintf(&b, "  %s → %s → %s%s\n", who, c, what, c.but())
		}
		if e.Reached != nil {
			fmt.Fprintf(&b, "  but only %s\n", faces(e.Reached, e.domain))
		}
		if !e.foreign && e.Principal.Kind() == spiffe.KindUser {
			fmt.Fprintf(&b, "on %s\n", strings.Join(e.Hosts, ", "))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%s does not reach %s\n", who, what)
	for _, o := range e.Obstacles {
		if o.Remedy.Place == "" {
			fmt.Fprintf(&b, "  %s\n", o.Problem)
			continue
		}
		fmt.Fprintf(&b, "  %s: %s\n", o.Problem, o.Remedy.text(e.Principal, e.domain))
	}
	if len(e.Chains) > 0 {
		return b.String()
	}
	if (e.TrustDomain != "" || e.Cluster != "") && e.foreign {
		b.WriteString("  neither belongs to this cluster\n")
		return b.String()
	}
	for _, l := range e.Latent {
		fmt.Fprintf(&b, "  but %s → %s → %s%s, %s\n", who, l.Chain, what, l.but(), l.condition())
	}
	for _, c := range e.Ended {
		fmt.Fprintf(&b, "  %s → %s → %s, but that has ended\n", who, c, what)
	}
	for _, c := range e.Excepted {
		for _, x := range c.Except {
			fmt.Fprintf(&b, "  %s → %s → %s, but roles.%s.except has %q\n", who, c, what, x.Role, x.Name)
		}
	}
	for _, w := range e.Ways {
		fmt.Fprintf(&b, "  %s → %s%s, held by %s\n", w.Chain, what, w.but(), holders(w, e.nodes, e.domain))
	}
	if len(e.Ways) == 0 {
		b.WriteString("  no role reaches it\n")
	}
	if len(e.Remedies) == 0 && (e.TrustDomain != "" || e.Cluster != "") {
		fmt.Fprintf(&b, "to give access, give %s a role, and name that in the roles of %s\n", who, what)
		return b.String()
	}
	if len(e.Remedies) == 0 {
		fmt.Fprintf(&b, "to give access, write roles.<name>.services = [ %q ]; and give %s that role\n", e.Service, who)
		return b.String()
	}
	b.WriteString("to give access, do one of these:\n")
	for i, r := range e.Remedies {
		if i == 5 {
			fmt.Fprintf(&b, "  or one of %d more, see --json\n", len(e.Remedies)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", r.text(e.Principal, e.domain))
	}
	return b.String()
}

// text describes the change and the additional access that it opens: other services for the same
// principal, or the same service for others.
func (r Remedy) text(to spiffe.ID, domain string) string {
	change := fmt.Sprintf("add %q to %s", r.Value, r.Place)
	if strings.HasSuffix(r.Place, ".visibility") {
		change = fmt.Sprintf("write %s = %q", r.Place, r.Value)
	}
	if len(r.Part) > 0 {
		change += ", which opens only " + faces(r.Part, domain) + " of it"
	}
	switch also := r.also(to, domain); {
	case also == "" && len(r.Part) > 0:
		return change + ", and nothing else"
	case also == "":
		return change + ", which opens nothing else"
	case len(r.Part) > 0:
		return change + ", and also " + also
	default:
		return change + ", which also " + also
	}
}

// also describes the additional access that a remedy opens. If there is none, the text is empty.
func (r Remedy) also(to spiffe.ID, domain string) string {
	var opens, letsIn []string
	for _, p := range r.Opens {
		if p.Principal == to {
			opens = append(opens, service(p.Service, domain))
		} else {
			letsIn = append(letsIn, called(p.Principal, domain))
		}
	}
	var all []string
	if opens != nil {
		all = append(all, "opens "+few(opens))
	}
	if letsIn != nil {
		all = append(all, "lets in "+few(slices.Compact(letsIn)))
	}
	return strings.Join(all, " and ")
}

// few joins names with commas, and shortens a long list.
func few(names []string) string {
	if n := len(names); n > 5 {
		names = append(names[:4], fmt.Sprintf("%d more", n-4))
	}
	return strings.Join(names, ", ")
}

// service returns the name of a service, of one host's instance, or of a port, for people in a
// trust domain.
func service(name, domain string) string {
	if id, err := spiffe.ParseID(name); err == nil {
		return called(id, domain)
	}
	if part, port, several := strings.Cut(name, ":"); several {
		return service(part, domain) + ":" + port
	}
	if service, host, one := strings.Cut(name, "@"); one {
		return "service/" + host + "/" + service
	}
	return "service/" + name
}

// String returns the answer as text for people. Principals that reach the service in the same way
// are listed together.
func (a Answer) String() string { return a.principals() + a.Edge.String() }

func (a Answer) principals() string {
	what := service(a.Service, a.domain)
	var latent strings.Builder
	for _, l := range a.Latent {
		fmt.Fprintf(&latent, "  %s → %s%s, %s\n", l.Chain, what, l.but(), l.condition())
		for line := range slices.Chunk(l.Users, 5) {
			fmt.Fprintf(&latent, "    %s\n", Way{}.listed(line, a.domain))
		}
	}
	if len(a.Reaching) == 0 && latent.Len() > 0 {
		return fmt.Sprintf("nobody reaches %s without a grant\n%s", what, latent.String())
	}
	if len(a.Reaching) == 0 {
		why := "nobody who acts on a host holds a role that reaches it"
		if a.hidden {
			why = "its visibility keeps it to its own host"
		}
		return fmt.Sprintf("nobody reaches %s\n  %s\n", what, why)
	}
	var b strings.Builder
	verb := "reach"
	if len(a.Reaching) == 1 {
		verb = "reaches"
	}
	fmt.Fprintf(&b, "%s %s %s\n", plural(len(a.Reaching), "principal"), verb, what)
	for _, w := range a.ways {
		fmt.Fprintf(&b, "  %s → %s%s\n", w.Chain, what, w.but())
		if w.Role == "node" && len(w.Holders) == a.nodes {
			fmt.Fprintf(&b, "    %s\n", holders(w, a.nodes, a.domain))
			continue
		}
		for line := range slices.Chunk(w.Holders, 5) {
			fmt.Fprintf(&b, "    %s\n", w.listed(line, a.domain))
		}
	}
	return b.String() + latent.String()
}

// holders names the principals that hold a role. If all nodes hold it, they are summarized.
func holders(w Way, nodes int, domain string) string {
	ids, all := w.Holders, 0
	for _, id := range ids {
		if id.Kind() == spiffe.KindNode && id.TrustDomain() == domain {
			all++
		}
	}
	switch {
	case len(ids) == 0:
		return "nobody"
	case nodes > 1 && all == nodes && all == len(ids):
		return fmt.Sprintf("every node, all %d", nodes)
	case len(ids) > 8:
		return fmt.Sprintf("%s and %d more", w.listed(ids[:7], domain), len(ids)-7)
	default:
		return w.listed(ids, domain)
	}
}

// listed names some of the holders of a role, with the time at which the role of each ends.
func (w Way) listed(ids []spiffe.ID, domain string) string {
	var all []string
	for _, id := range ids {
		all = append(all, called(id, domain)+ending(w.Ends[id]))
	}
	return strings.Join(all, ", ")
}

// faces joins the names of services and ports, for people in a trust domain.
func faces(all []compile.Face, domain string) string {
	var names []string
	for _, f := range all {
		names = append(names, strings.TrimSuffix(called(f.ID, domain)+":"+f.Port, ":"))
	}
	return strings.Join(names, ", ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
