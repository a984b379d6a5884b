package upstream

import (
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

// TestRuleset checks who may connect to the upstream of a service on loopback: only the forwarder,
// root and the account of the service. If the host does not have an account, that is an error, and
// the account gets no access.
func TestRuleset(t *testing.T) {
	const forwarder = 901
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(me.Uid)
	if err != nil {
		t.Fatal(err)
	}
	publish := func(upstream, account string, protocol document.Protocol) document.Published {
		return document.Published{ID: kit.ID("service/wiki"), Upstream: upstream, User: account, Protocol: protocol}
	}
	for name, c := range map[string]struct {
		published document.Published
		rules     []string // rules that the table must contain
		none      bool     // whether the table must be empty
		fails     string
	}{
		"an account of the service": {published: publish("127.0.0.1:8080", me.Username, document.TCP),
			rules: []string{"ip daddr 127.0.0.1 tcp dport 8080 tcp flags & (syn | ack) == syn meta skuid != { ", "reject with tcp reset"}},
		"a missing account": {published: publish("127.0.0.1:8080", "nobody-is-called-so", document.TCP),
			rules: []string{"tcp dport 8080"}, fails: "upstream of spiffe://"},
		"both families":  {published: publish("localhost:8080", me.Username, document.TCP), rules: []string{"ip daddr 127.0.0.1 tcp", "ip6 daddr ::1 tcp"}},
		"datagrams":      {published: publish("127.0.0.1:53", me.Username, document.UDP), rules: []string{"udp dport 53", "udp sport 53"}},
		"a Unix socket":  {published: publish("unix:/run/wiki.sock", me.Username, document.TCP), none: true},
		"another host's": {published: publish("192.0.2.7:8080", me.Username, document.TCP), none: true},
	} {
		t.Run(name, func(t *testing.T) {
			table, errs := ruleset("florete", forwarder, document.Forwarder{Publish: []document.Published{c.published}})
			if c.fails == "" && len(errs) > 0 || c.fails != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.fails)) {
				t.Errorf("%v, want %q", errs, c.fails)
			}
			for _, rule := range c.rules {
				if !strings.Contains(table, rule) {
					t.Errorf("no %q in\n%s", rule, table)
				}
			}
			if guards := strings.Contains(table, "skuid"); guards == c.none {
				t.Errorf("guards %t:\n%s", guards, table)
			}
			if !c.none && (!strings.Contains(table, "901") || c.fails == "" && !strings.Contains(table, strconv.Itoa(uid))) {
				t.Errorf("neither the forwarder's account nor %d:\n%s", uid, table)
			}
			if nft, err := exec.LookPath("nft"); err == nil {
				check := exec.Command(nft, "--check", "--file", "-")
				check.Stdin = strings.NewReader(table)
				if out, err := check.CombinedOutput(); err != nil && !strings.Contains(string(out), "Operation not permitted") {
					t.Errorf("nft: %v: %s\n%s", err, out, table)
				}
			}
		})
	}
}
