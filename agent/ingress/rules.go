package ingress

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/florete/florete/internal/document"
)

// ambiguous is a regular expression for request targets whose path a service may read differently
// from the proxy. It matches encoded slashes, backslashes, dots and percent signs, dot segments,
// empty segments, path parameters, characters that a URL cannot contain, and encoded bytes that
// cannot occur in UTF-8. If a name has rules for paths, the proxy refuses such requests, because
// the service could serve a path that the rules did not check. The expression must be matched
// without regard to case.
const ambiguous = `^[^?]*(//|/\.\.?(/|\?|%|$)|[\x5c;#]|%(0[0-9a-f]|1[0-9a-f]|2[5ef]|3b|5c|7f|c[01])|/%20|[^\x21-\x7e])`

// unknownName is the text for visitors of a name that the ingress does not serve.
const unknownName = "This server has no site of that name.\n"

// defaultTimeout is the time for which a proxy waits for a service.
const defaultTimeout = time.Hour

// Route says how a proxy handles the requests for some paths of a site. If several routes match a
// request, the first one applies.
type Route struct {
	Pattern  string // for decoded paths, without regard to case; empty for all paths
	Deny     bool
	From     []netip.Prefix // networks of clients; empty for all
	Upstream netip.AddrPort
}

// Routes returns the routes of a site, in the order in which they apply. The last route is for all
// paths.
func (s Site) Routes() (routes []Route) {
	for _, d := range s.Rules.Decisions() {
		r := Route{Pattern: d.Pattern(), Deny: d.Deny, From: d.From, Upstream: s.Upstream}
		if d.Port != "" {
			r.Upstream = s.Ports[d.Port]
		}
		routes = append(routes, r)
		if r.Pattern == "" {
			return routes
		}
	}
	return routes
}

// Seconds returns for how many seconds a proxy waits for the service.
func (s Site) Seconds() int {
	if s.Rules.Timeout > 0 {
		return s.Rules.Timeout
	}
	return int(defaultTimeout / time.Second)
}

// portsOf returns the listeners of the ports that the rules of a service name.
func portsOf(r document.Reachable, reach []document.Reachable) (map[string]netip.AddrPort, error) {
	ports := map[string]netip.AddrPort{}
	for _, o := range reach {
		if o.ID == r.ID && o.Protocol == document.TCP {
			ports[o.Port] = o.Listen
		}
	}
	for _, p := range r.Ingress.Paths {
		if !ports[p.Port].IsValid() && p.Port != "" {
			return nil, fmt.Errorf("%s: path %s leads to port %q, which this host does not reach", r.TLSName, p.Path, p.Port)
		}
	}
	return ports, nil
}
