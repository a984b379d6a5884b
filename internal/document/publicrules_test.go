package document

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"
)

func networks(all ...string) (prefixes []netip.Prefix) {
	for _, p := range all {
		prefixes = append(prefixes, netip.MustParsePrefix(p))
	}
	return prefixes
}

// TestDecisions checks that the rule with the longest path decides, that a rule inherits from the
// rule with the next shorter path, and that Pattern matches the same paths as At.
func TestDecisions(t *testing.T) {
	rules := PublicRules{
		From: networks("10.0.0.0/8", "2001:db8::/32"),
		Paths: []PathRule{
			{Path: "/admin", From: networks("10.1.0.0/16", "192.168.0.0/16")},
			{Path: "/admin/all", From: networks("0.0.0.0/0", "::/0")},
			{Path: "/admin/none", From: networks("192.168.0.0/16")},
			{Path: "/admin/ws", Port: "ws"},
			{Path: "/metrics", Deny: true},
			{Path: "/metrics/open", From: networks("10.0.0.0/8")},
			{Path: "/metrics/sub"},
			{Path: "/ws", Port: "ws"},
		},
	}
	if err := rules.check(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/":                 " 10.0.0.0/8 2001:db8::/32",
		"/administrator":    " 10.0.0.0/8 2001:db8::/32",
		"/admin":            " 10.1.0.0/16",
		"/Admin/x":          " 10.1.0.0/16",
		"/admin.json":       " 10.1.0.0/16",
		"/admin;x":          " 10.1.0.0/16",
		"/admin\n":          " 10.1.0.0/16",
		"/admin/allx":       " 10.1.0.0/16",
		"/admin/all":        " 10.0.0.0/8 2001:db8::/32",
		"/admin/none":       " denied",
		"/admin/ws/x":       "ws 10.1.0.0/16",
		"/metrics/x":        " denied",
		"/metrics/open":     " 10.0.0.0/8",
		"/metrics/sub":      " denied",
		"/metrics/sub.json": " denied",
		"/metricsx":         " 10.0.0.0/8 2001:db8::/32",
		"/ws":               "ws 10.0.0.0/8 2001:db8::/32",
		"/ws/x":             "ws 10.0.0.0/8 2001:db8::/32",
		"/ws.js":            " 10.0.0.0/8 2001:db8::/32",
	} {
		say := func(d Decision) string {
			words := []string{d.Port}
			if d.Deny {
				return d.Port + " denied"
			}
			for _, p := range d.From {
				words = append(words, p.String())
			}
			return strings.Join(words, " ")
		}
		if got := say(rules.At(path)); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
		for _, d := range rules.Decisions() {
			if regexp.MustCompile("(?i)" + d.Pattern()).MatchString(path) {
				if say(d) != want {
					t.Errorf("%q: the pattern %q decides %q, want %q", path, d.Pattern(), say(d), want)
				}
				break
			}
		}
	}
	for address, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.2.3": false, "192.168.1.1": false, "2001:db8::1": false} {
		if got := rules.At("/admin").Allows(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	if (Decision{From: networks("0.0.0.0/0")}).Allows(netip.Addr{}) {
		t.Error("a client without an address is let in")
	}
}

// TestPublicRulesAreChecked checks that a manifest is refused if its rules would have another
// meaning in the configuration of a proxy.
func TestPublicRulesAreChecked(t *testing.T) {
	for _, path := range []string{"", "admin", "/admin/", "//", "/a b", "/a\"", "/a;", "/A", "/..", "/a/../b", "/a/.", "/.", "/a{", "/$uri", "/a\\b", "/a\n", "/\u00fc", "/*", "/" + strings.Repeat("a", 255)} {
		if err := (PublicRules{Paths: []PathRule{{Path: path, Deny: true}}}).check(); err == nil {
			t.Errorf("path %q is accepted", path)
		}
	}
	for _, r := range []PublicRules{
		{HSTS: -1}, {MaxBody: maxBody + 1}, {Timeout: -5}, {From: []netip.Prefix{{}}}, {From: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}},
		{From: networks("::ffff:10.0.0.0/104")}, {Paths: []PathRule{{Path: "/b"}, {Path: "/a"}}}, {Paths: []PathRule{{Path: "/a"}, {Path: "/a"}}},
		{Paths: []PathRule{{Path: "/a", Deny: true, From: networks("10.0.0.0/8")}}},
	} {
		if err := r.check(); err == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
	for _, path := range []string{"/", "/.git", "/.well-known/x", "/a/b.c_d~e-f", "/~user"} {
		if err := (PublicRules{Paths: []PathRule{{Path: path, Deny: true}}}).check(); err != nil {
			t.Error(err)
		}
	}
	r := Reachable{TLSName: "wiki.example", Ingress: PublicRules{Paths: []PathRule{{Path: "/ws", Port: "ws"}}}}
	if err := r.checkPublic([]Reachable{r, {Port: "ws", Protocol: UDP}}); err == nil {
		t.Error("a path to a port that the host does not reach is accepted")
	}
	r = Reachable{TLSName: "wiki.example", Redirects: map[string]string{"www.example; return 200": "wiki.example"}}
	if err := r.checkPublic(nil); err == nil {
		t.Error("a redirect with a name that is none is accepted")
	}
}
