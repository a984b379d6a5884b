package document

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// PublicRules restricts the requests from the Internet that an ingress passes to a service, at all
// public names of the service.
type PublicRules struct {
	// From lists the networks whose clients may use the public names. If the list is empty, all
	// clients may.
	From  []netip.Prefix `json:"from,omitempty"`  // sorted
	Paths []PathRule     `json:"paths,omitempty"` // sorted by path
	// HSTS is the time in seconds for which browsers connect to the names only over HTTPS (RFC
	// 6797). If it is zero, the ingress leaves the header that the service sends unchanged.
	HSTS int `json:"hsts,omitempty"`
	// MaxBody is the maximum size of a request body in MiB. Zero means no limit.
	MaxBody int `json:"maxBody,omitempty"`
	// Timeout is the time in seconds for which the ingress waits for the service between two reads
	// or two writes. Zero selects the default of the ingress.
	Timeout int `json:"timeout,omitempty"`
}

// PathRule applies to requests whose path has the prefix Path. The prefix matches whole segments:
// "/admin" matches "/admin" and "/admin/users", but not "/administrator". If several rules match,
// the one with the longest prefix applies.
//
// Rules ignore case, because the service may ignore it too. The service may also serve
// "/admin.json" like "/admin". A rule that restricts access therefore also matches a segment that
// continues with any character other than a letter, a digit, "-" or "_".
type PathRule struct {
	Path string         `json:"path"`
	Deny bool           `json:"deny,omitempty"`
	From []netip.Prefix `json:"from,omitempty"` // sorted; as in PublicRules, and in addition to it
	// Port is the port of the service to which the ingress passes the requests. If it is empty,
	// they go to the same port as all other requests.
	Port string `json:"port,omitempty"`
}

// IsZero reports whether the rules have no effect.
func (r PublicRules) IsZero() bool {
	return len(r.From) == 0 && len(r.Paths) == 0 && r.HSTS == 0 && r.MaxBody == 0 && r.Timeout == 0
}

// Restricts reports whether the treatment of a request depends on its path.
func (r PublicRules) Restricts() bool { return len(r.Paths) > 0 }

// Decision is the result of applying PublicRules to a path.
type Decision struct {
	Path string // path of the rule that decides; empty if no rule matches
	Deny bool
	// From lists the networks whose clients may send these requests, after all rules are combined.
	// If the list is empty and Deny is false, all clients may.
	From []netip.Prefix
	Port string // as in PathRule

	restricts bool // a rule of a path denies requests or limits them to networks
}

// Allows reports whether a client with this address may send the request. A client with an unknown
// address, given as the zero address, may do so only if all clients may.
func (d Decision) Allows(client netip.Addr) bool {
	if d.Deny || len(d.From) == 0 {
		return !d.Deny
	}
	return client.IsValid() && slices.ContainsFunc(d.From, func(p netip.Prefix) bool { return p.Contains(client.Unmap()) })
}

// Decisions returns the decision for each path that has a rule, and a decision for all other paths.
// The decisions are sorted by path, the longest path first and the decision for all other paths
// last. The first decision that matches a request applies to it.
//
// A rule without Deny and From inherits both from the rule with the next shorter path that matches.
// A rule without Port inherits the port in the same way.
func (r PublicRules) Decisions() []Decision {
	all := []Decision{{From: r.From}}
	paths := slices.SortedFunc(slices.Values(r.Paths), func(a, b PathRule) int {
		return cmp.Or(cmp.Compare(len(a.Path), len(b.Path)), cmp.Compare(a.Path, b.Path))
	})
	for _, rule := range paths {
		// Shorter paths are already in all, so the last one that matches is the longest.
		i := len(all) - 1
		for !all[i].within(rule.Path) {
			i--
		}
		d := all[i]
		d.Path = rule.Path
		switch {
		case rule.Deny:
			d.Deny, d.restricts = true, true
		case len(rule.From) > 0:
			d.Deny, d.From, d.restricts = false, r.From, true
			if !everyone(rule.From) {
				d.From = intersect(r.From, rule.From)
				d.Deny = len(d.From) == 0
			}
		}
		if rule.Port != "" {
			d.Port = rule.Port
		}
		all = append(all, d)
	}
	slices.Reverse(all)
	return all
}

// within reports whether the decision also applies to path, the longer path of another rule.
func (d Decision) within(path string) bool {
	return d.Path == "" || d.Path == "/" || path == d.Path || strings.HasPrefix(path, d.Path+"/")
}

// At returns the decision for requests with the given path, which must be decoded and begin with a
// slash.
func (r PublicRules) At(path string) Decision {
	for _, d := range r.Decisions() {
		if d.matches(strings.ToLower(path)) {
			return d
		}
	}
	panic("unreachable: the last decision matches every path")
}

func (d Decision) matches(path string) bool {
	if d.Path == "" || d.Path == "/" {
		return true
	}
	rest, found := strings.CutPrefix(path, d.Path)
	if !found || rest == "" || rest[0] == '/' {
		return found
	}
	return d.restricts && !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", rune(rest[0]))
}

// Pattern returns a regular expression for the decoded paths to which the decision applies, or ""
// if it applies to all paths. The expression must be matched without regard to case.
func (d Decision) Pattern() string {
	switch {
	case d.Path == "" || d.Path == "/":
		return ""
	case d.restricts:
		return "^" + regexp.QuoteMeta(d.Path) + "([^a-z0-9_-]|$)"
	}
	return "^" + regexp.QuoteMeta(d.Path) + "(/|$)"
}

// everyone reports whether the networks include all IPv4 and all IPv6 addresses.
func everyone(networks []netip.Prefix) bool {
	any4, any6 := netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	return slices.Contains(networks, any4) && slices.Contains(networks, any6)
}

// intersect returns the networks that are contained in both lists. If a is empty, it stands for all
// addresses.
func intersect(a, b []netip.Prefix) (both []netip.Prefix) {
	if len(a) == 0 {
		return b
	}
	for _, x := range a {
		for _, y := range b {
			if !x.Overlaps(y) {
				continue
			}
			// One of two networks that overlap contains the other.
			narrow := x
			if y.Bits() > x.Bits() {
				narrow = y
			}
			if !slices.Contains(both, narrow) {
				both = append(both, narrow)
			}
		}
	}
	return both
}

// rulePath matches the permitted paths of rules. It is strict, because the paths are written into
// the configuration of proxies.
var rulePath = regexp.MustCompile(`^(/|(/\.?[a-z0-9_~-][a-z0-9._~-]*)+)$`)

// publicName matches the DNS names that are permitted as server names of entries, and as sources and
// targets of redirects.
var publicName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Maximum values of the fields of PublicRules.
const (
	maxHSTS    = 63072000
	maxBody    = 1 << 20
	maxTimeout = 86400
)

func (r PublicRules) check() error {
	if err := checkNetworks(r.From); err != nil {
		return err
	}
	for i, p := range r.Paths {
		switch {
		case len(p.Path) > 255 || !rulePath.MatchString(p.Path):
			return fmt.Errorf("path %q, want segments of lower-case letters, digits, and . _ ~ -", p.Path)
		case i > 0 && p.Path <= r.Paths[i-1].Path:
			return fmt.Errorf("path %q: given twice, or not sorted", p.Path)
		case p.Deny && len(p.From) > 0:
			return fmt.Errorf("path %q: both deny and from", p.Path)
		}
		if err := checkNetworks(p.From); err != nil {
			return fmt.Errorf("path %q: %w", p.Path, err)
		}
	}
	for _, limit := range []struct {
		name       string
		value, max int
	}{{"hsts", r.HSTS, maxHSTS}, {"maxBody", r.MaxBody, maxBody}, {"timeout", r.Timeout, maxTimeout}} {
		if limit.value < 0 || limit.value > limit.max {
			return fmt.Errorf("%s %d, want at most %d", limit.name, limit.value, limit.max)
		}
	}
	return nil
}

func checkNetworks(all []netip.Prefix) error {
	for _, p := range all {
		if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() {
			return fmt.Errorf("from %s, want the network %s", p, p.Masked())
		}
	}
	return nil
}

// checkPublic checks the rules and redirects of a service. An ingress writes them into the
// configuration of its proxy.
func (r Reachable) checkPublic(reach []Reachable) error {
	if err := r.Ingress.check(); err != nil {
		return fmt.Errorf("ingress: %w", err)
	}
	for _, p := range r.Ingress.Paths {
		if p.Port != "" && !slices.ContainsFunc(reach, func(o Reachable) bool { return o.ID == r.ID && o.Port == p.Port && o.Protocol == TCP }) {
			return fmt.Errorf("ingress: path %q: no TCP port %q in reach", p.Path, p.Port)
		}
	}
	for from, to := range r.Redirects {
		for _, name := range []string{from, to} {
			if len(name) > 253 || !publicName.MatchString(name) {
				return fmt.Errorf("redirects: %q, want a lower-case DNS name", name)
			}
		}
	}
	return nil
}
