package attacks

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/local"
)

// approvers contains the keys with which users approve requests for roles, by user.
type approvers map[string]ssh.Signer

// facts returns the public keys for the flake.
func (a approvers) facts() map[string]string {
	all := map[string]string{}
	for user, key := range a {
		all[user] = kit.Authorized(key.PublicKey())
	}
	return all
}

const grantID = "0123456789abcdef0123456789abcdef"

// oncall returns a grant of the role oncall for Erin, signed with Dora's key.
func (c *cluster) oncall(change ...func(*accessgrant.Grant)) accessgrant.Signed {
	now := time.Now().Truncate(time.Second)
	g := accessgrant.Grant{
		Cluster: "sec", ID: grantID, Role: "oncall", User: kit.ID("user/erin"), By: kit.ID("user/dora"),
		From: unixtime.Of(now), Until: unixtime.Of(now.Add(time.Hour)),
	}
	for _, f := range change {
		f(&g)
	}
	return kit.SignGrant(g, c.approve["dora"])
}

// submit sends a JSON body to the config provider on host p, from an account of host c.
func (c *cluster) submit(t *testing.T, uid uint32, path string, about any) error {
	body := kit.JSON(about)
	answer, err := c.sayAs(t, uid, spiffe.ControlService, fmt.Sprintf(
		"POST %s HTTP/1.1\r\nConnection: close\r\nHost: florete-control.p.demo.flor.rete\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body))
	if err == nil && !strings.HasPrefix(answer, "HTTP/1.1 200") {
		err = errors.New(answer)
	}
	return err
}

// TestAccessGrants attacks requests for a role and their approval: as the user who asks, as a
// provider that offers what it likes, and with what was said before.
func TestAccessGrants(t *testing.T) {
	agenttest.Root(t, "to act as erin")
	c := start(t)
	erin := c.svid(t, c.c, "cert-user-erin")
	vault := func() error { return c.knock(t.Context(), "vault", erin) }
	closed := func(when string) {
		t.Helper()
		if err := vault(); err == nil {
			t.Fatalf("erin reaches vault %s", when)
		}
	}
	signed := func(change ...func(*accessgrant.Grant)) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error {
			return c.submit(t, uidErin, "/v1/access/grants", c.oncall(change...))
		}
	}
	invalid := local.Decision{Caller: "spiffe://demo.flor/user/erin", Kind: "control", Decision: "invalid", Code: "mismatch"}
	run(t, []attack{
		{
			name: "no grant", try: func(*testing.T, *cluster) error { return vault() },
			refusal: "Application error 0x",
		},
		{
			name: "a request of one who may not",
			try: func(t *testing.T, c *cluster) error {
				return c.submit(t, uidDora, "/v1/access/requests", control.AccessRequest{ID: grantID, Role: "oncall", Seconds: 60, Reason: "x"})
			},
			refusal: "may not request role oncall",
			row:     local.Decision{Caller: "spiffe://demo.flor/user/dora", Kind: "control", Decision: "invalid", Code: "mismatch"},
		},
		{
			name: "a request for a role without requests",
			try: func(t *testing.T, c *cluster) error {
				return c.submit(t, uidErin, "/v1/access/requests", control.AccessRequest{ID: grantID, Role: "operator", Seconds: 60, Reason: "x"})
			},
			refusal: "nobody may request role", row: invalid,
		},
		{
			name: "a grant with a key of nobody",
			try: func(t *testing.T, c *cluster) error {
				forged := c.oncall()
				forged.Signature = kit.SignGrant(accessgrant.Grant{Cluster: "sec", ID: grantID}, kit.NewHostKey()).Signature
				return c.submit(t, uidErin, "/v1/access/grants", forged)
			},
			refusal: "signed with none of the keys of user/dora", row: invalid,
		},
		{
			name: "approval of one's own request",
			try: func(t *testing.T, c *cluster) error {
				g, err := c.oncall(func(g *accessgrant.Grant) { g.By = g.User }).Open()
				if err != nil {
					return err
				}
				return c.submit(t, uidErin, "/v1/access/grants", kit.SignGrant(g, c.approve["erin"]))
			},
			refusal: "approved a request of their own", row: invalid,
		},
		{
			name: "one's own approval in the name of dora",
			try: func(t *testing.T, c *cluster) error {
				g, err := c.oncall().Open()
				if err != nil {
					return err
				}
				return c.submit(t, uidErin, "/v1/access/grants", kit.SignGrant(g, c.approve["erin"]))
			},
			refusal: "signed with none of the keys of user/dora", row: invalid,
		},
		{name: "a grant of another cluster", try: signed(func(g *accessgrant.Grant) { g.Cluster = "demo" }), refusal: "is of cluster", row: invalid},
		{
			name: "a grant for longer than most", try: signed(func(g *accessgrant.Grant) { g.Until = g.Until.Add(time.Second) }),
			refusal: "want at most the 1h0m0s", row: invalid,
		},
		{
			name: "a grant for later", try: signed(func(g *accessgrant.Grant) { g.From, g.Until = g.From.Add(time.Hour), g.Until.Add(time.Hour) }),
			refusal: "compare the clocks", row: invalid,
		},
		{name: "a grant for another role", try: signed(func(g *accessgrant.Grant) { g.Role = "writer" }), refusal: "nobody may request role", row: invalid},
		{name: "a grant for another user", try: signed(func(g *accessgrant.Grant) { g.User = kit.ID("user/bob") }), refusal: "user/bob may not request role", row: invalid},
	})
	closed("after what was refused")

	if err := c.submit(t, uidErin, "/v1/access/requests", control.AccessRequest{ID: grantID, Role: "oncall", Seconds: 3600, Reason: "search is down"}); err != nil {
		t.Fatal(err)
	}
	closed("by a request alone")
	good := c.oncall()
	if err := c.submit(t, uidDora, "/v1/access/grants", good); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	kit.Succeeds(t, "the grant in force", vault)
	if took := time.Since(began); took > within {
		t.Errorf("in force after %s", took)
	}
	if err := c.knock(t.Context(), "secret", erin); err == nil {
		t.Error("the grant opens another service")
	}
	live, err := local.Hold(t.Context(), c.b.Manifest.Forwarder.Listen[0], kit.ID("service/vault"), erin)
	if err != nil {
		t.Fatal(err)
	}
	end := c.oncall(func(g *accessgrant.Grant) { g.Ends = true })
	if err := c.submit(t, uidDora, "/v1/access/grants", end); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if took := live.Ended(2 * within).Sub(began); took > within {
		t.Errorf("connections ended after %s", took)
	}
	closed("after the end")

	run(t, []attack{{
		name: "a grant that was ended, again", try: func(t *testing.T, c *cluster) error { return c.submit(t, uidErin, "/v1/access/grants", good) },
		refusal: "was approved or ended already", row: invalid,
	}})
	// The provider was broken into, and offers the grant again, beside one that it made itself. The
	// worst that can arrive at the host is that its own file has both.
	path := c.b.Layout().AccessGrants()
	was := kit.ReadFile(path)
	t.Cleanup(func() {
		if err := os.WriteFile(path, was, 0o644); err != nil {
			t.Error(err)
		}
	})
	held, err := accessgrant.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := c.oncall(func(g *accessgrant.Grant) { g.ID = strings.Repeat("ab", 16) }).Open()
	if err != nil {
		t.Fatal(err)
	}
	held.Grants = []accessgrant.Signed{good, kit.SignGrant(forged, kit.NewHostKey())}
	if err := atomicfile.File(path, held.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(time.Second) {
		closed("by a grant that is over, or forged")
	}
}
