package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/nix/operator/compile"
)

// Entry is a port of a host at which callers that are not part of the cluster reach a service.
type Entry struct {
	Host        string   `json:"host"`
	Port        int      `json:"port"`
	Protocols   []string `json:"protocols"`             // "tcp", "udp" or both
	Of          string   `json:"of,omitempty"`          // name of the port of the service, if it has several
	From        []string `json:"from,omitempty"`        // addresses and networks; empty for anyone
	ServerNames []string `json:"serverNames,omitempty"` // in the TLS handshake
	Outside     string   `json:"outside,omitempty"`     // name of outside callers; empty for strangers

	// Caller is the identity that outside callers prove with a certificate. It is zero if they are
	// known by their addresses alone.
	Caller spiffe.ID `json:"caller,omitzero"`
}

// entries returns the sorted entries that lead to a service or to one of its ports.
func (a *Access) entries(target string) (all []Entry) {
	name, at := a.target(target)
	s := a.t.Services[name]
	leads := func(host, port string) bool { // the node of the host reaches the port
		way := name
		if port != "" {
			way += ":" + port
		}
		return len(a.held(a.principals[a.t.Hosts[host].ID], way)) > 0
	}
	wanted := func(port string) bool {
		return slices.ContainsFunc(s.IDs, func(id spiffe.ID) bool { return at(compile.Face{ID: id, Port: port}) })
	}
	for _, key := range slices.Sorted(maps.Keys(s.PublicPorts)) {
		p := s.PublicPorts[key]
		of, protocols := "", []string{transportOf(s.Protocol)}
		if s.Ports != nil {
			of, protocols = key, s.Ports[key].Protocols
		}
		for _, host := range slices.Sorted(maps.Keys(a.t.Hosts)) {
			ingress := slices.Contains(a.t.Hosts[host].Capabilities, "ingress") && (len(p.Hosts) == 0 || slices.Contains(p.Hosts, host))
			if ingress && wanted(of) && leads(host, of) {
				all = append(all, Entry{Host: host, Port: p.Port, Protocols: protocols, Of: of, From: p.From, ServerNames: p.ServerNames})
			}
		}
	}
	for _, caller := range slices.Sorted(maps.Keys(a.t.Outside)) {
		o := a.t.Outside[caller]
		entry := func(of string, port int, protocols []string) {
			faces := a.t.Leads(o.Role)[name]
			if wanted(of) && slices.ContainsFunc(faces, func(f compile.Face) bool { return f.Port == of }) {
				all = append(all, Entry{Host: o.Via, Port: port, Protocols: protocols, Of: of, From: o.Addresses, Outside: caller, Caller: o.ID})
			}
		}
		if s.Ports == nil {
			entry("", s.ListenPort, []string{transportOf(s.Protocol)})
		}
		for _, of := range slices.Sorted(maps.Keys(s.Ports)) {
			entry(of, s.Ports[of].ListenPort, s.Ports[of].Protocols)
		}
	}
	return all
}

// transportOf returns the transport protocol of a service.
func transportOf(protocol string) string {
	if protocol == "udp" {
		return protocol
	}
	return "tcp"
}

// String returns the entry as a sentence.
func (e Entry) String() string {
	who := "anyone"
	switch {
	case !e.Caller.IsZero():
		who = fmt.Sprintf("outside caller %s, proven by its certificate of %s", e.Outside, e.Caller.Short())
		if len(e.From) > 0 {
			who += " and from " + few(slices.Clone(e.From))
		}
		who += ","
	case e.Outside != "":
		who = fmt.Sprintf("outside caller %s, known by its address alone (%s),", e.Outside, few(slices.Clone(e.From)))
	case len(e.From) > 0:
		who = "anyone in " + few(slices.Clone(e.From))
	}
	what := "it"
	if e.Of != "" {
		what = "its port " + e.Of
	}
	words := fmt.Sprintf("%s reaches %s at %s port %d of %s", who, what, strings.Join(upper(e.Protocols), " and "), e.Port, e.Host)
	if len(e.ServerNames) > 0 {
		words += " as " + few(slices.Clone(e.ServerNames))
	}
	return words
}

func upper(words []string) (all []string) {
	for _, w := range words {
		all = append(all, strings.ToUpper(w))
	}
	return all
}
