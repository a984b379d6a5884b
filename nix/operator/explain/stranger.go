package explain

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

// Stranger is the name that operators type for a client that has no identity in the cluster.
const Stranger = "stranger"

// Visit explains whether a stranger reaches a public URL.
type Visit struct {
	URL     string     `json:"url"`
	From    netip.Addr `json:"from,omitzero"` // address of the stranger; zero for any
	Allowed bool       `json:"allowed"`       // with no address: some strangers reach it
	Service string     `json:"service,omitempty"`
	// Ingress lists the hosts that answer for the name, sorted.
	Ingress []string `json:"ingress"`
	// Redirect is the URL to which the stranger is redirected.
	Redirect string `json:"redirect,omitempty"`
	// Rule is the place of the rule that decides. It is empty if no rule decides.
	Rule string `json:"rule,omitempty"`
	// Networks lists the networks from which strangers reach the URL. It is empty if they reach it
	// from all networks.
	Networks []netip.Prefix `json:"networks,omitempty"`
	Deny     bool           `json:"deny,omitempty"` // the rule denies it to everyone
	// SignIn is the issuer at which a stranger must sign in first. It is empty if a stranger need not.
	SignIn string `json:"signIn,omitempty"`
	// People tells who may sign in. It is nil if everybody may and the service sees the groups of
	// the issuer.
	People *SignIn `json:"people,omitempty"`
}

// IsStranger reports whether a word that an operator typed stands for strangers, who are callers
// from outside the cluster. If a principal has the word as its name, IsStranger returns false.
func (a *Access) IsStranger(who string) bool {
	_, err := a.Principal(who)
	return who == Stranger && err != nil
}

// Visit tells whether somebody from outside the cluster can open a URL that the cluster serves. The
// URL may be only a host name. The last argument is the visitor's network address, and the zero
// Addr stands for any address.
func (a *Access) Visit(at string, from netip.Addr) (Visit, error) {
	if !strings.Contains(at, "://") {
		at = "https://" + at
	}
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return Visit{}, fmt.Errorf("%q: want a URL such as https://wiki.example.org/admin", at)
	}
	wanted := "/" + strings.TrimPrefix(u.Path, "/")
	if cleaned := path.Clean(wanted); cleaned != wanted && cleaned+"/" != wanted {
		return Visit{}, fmt.Errorf("%q: want a path without empty segments, . and .., which an ingress may refuse", at)
	}
	host := strings.ToLower(u.Hostname())
	v := Visit{URL: "https://" + host + wanted, From: from.Unmap(), Ingress: []string{}}
	name, to := a.visited(host)
	if name == "" {
		return v, nil
	}
	s := a.t.Services[name]
	entrance := name
	if s.Ports != nil {
		entrance += ":" + compile.Entrance
	}
	v.Service, v.Ingress = name, append(v.Ingress, a.ingresses(s, entrance)...)
	if to != "" {
		v.Redirect, v.Allowed = "https://"+to+wanted, len(v.Ingress) > 0
		return v, nil
	}
	d := s.Ingress.At(wanted)
	if d.Port != "" {
		v.Service += ":" + d.Port
	}
	v.Deny, v.Networks = d.Deny, d.From
	if s.Gated() && !d.Deny {
		v.SignIn, v.People = a.t.Providers["oidc"].Issuer, signIn(s)
	}
	switch {
	case d.Path != "":
		v.Rule = "services." + name + ".ingress.paths." + strconv.Quote(d.Path)
	case len(d.From) > 0:
		v.Rule = "services." + name + ".ingress.from"
	}
	v.Allowed = len(v.Ingress) > 0 && !d.Deny && (!from.IsValid() || d.Allows(from))
	return v, nil
}

// visited returns the public service that has a name. If the name is redirected, visited returns
// the service to which the redirect leads, and the target of the redirect.
func (a *Access) visited(host string) (service, to string) {
	exact := func(s compile.Service) bool { return s.TLSName == host || slices.Contains(s.TLSAliases, host) }
	redirected := func(s compile.Service) bool { return s.Redirects[host] != "" }
	covered := func(s compile.Service) bool {
		return slices.ContainsFunc(s.TLSAliases, func(alias string) bool { return document.Covers(alias, host) })
	}
	for _, has := range []func(compile.Service) bool{exact, redirected, covered} {
		for name, s := range a.t.Services {
			if s.Visibility == "public" && has(s) {
				return name, s.Redirects[host]
			}
		}
	}
	return "", ""
}

// String returns the answer as text for people.
func (v Visit) String() string {
	text := v.reached()
	if v.SignIn != "" && v.Allowed {
		text += fmt.Sprintf("  needs a sign-in at %s\n", v.SignIn)
		for line := range strings.Lines(v.People.String()) {
			text += "  " + line
		}
	}
	return text
}

func (v Visit) reached() string {
	who := "strangers"
	if v.From.IsValid() {
		who = v.From.String()
	}
	through, service := strings.Join(v.Ingress, ", "), "service/"+v.Service
	var networks []string
	for _, p := range v.Networks {
		networks = append(networks, p.String())
	}
	only := strings.Join(networks, ", ")
	switch {
	case v.Service == "":
		return fmt.Sprintf("%s: no service has this public name\n", v.URL)
	case len(v.Ingress) == 0:
		return fmt.Sprintf("%s: no ingress serves this name of %s\n", v.URL, service)
	case v.Redirect != "":
		return fmt.Sprintf("%s redirects everyone to %s\n  through %s\n", v.URL, v.Redirect, through)
	case v.Deny:
		return fmt.Sprintf("no stranger reaches %s\n  %s denies it at %s\n", v.URL, v.Rule, through)
	case !v.Allowed:
		return fmt.Sprintf("%s does not reach %s\n  %s permits only %s at %s\n", who, v.URL, v.Rule, only, through)
	case v.From.IsValid() && only != "":
		return fmt.Sprintf("%s reaches %s of %s through %s\n  %s permits %s\n", who, v.URL, service, through, v.Rule, only)
	case only != "":
		return fmt.Sprintf("some strangers reach %s of %s through %s\n  %s permits only %s\n", v.URL, service, through, v.Rule, only)
	case v.Rule != "":
		return fmt.Sprintf("anyone reaches %s of %s through %s\n  %s decides this\n", v.URL, service, through, v.Rule)
	}
	return fmt.Sprintf("anyone reaches %s of %s through %s\n", v.URL, service, through)
}
