package attacks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/local"
)

// TestAudited checks that the audit log has a row for each type of action. It covers actions of
// hosts, of providers, of operators and of people on hosts. Rows about joining are checked in
// TestJoin.
func TestAudited(t *testing.T) {
	c := start(t)
	const b = "spiffe://demo.flor/node/b"
	need := func(name string) func(t *testing.T) error {
		return func(t *testing.T) error { return c.need(t, c.b, name, func(*hostapi.Client, *hostapi.Request) {}) }
	}
	granted := func(kind, name string) local.Decision {
		return local.Decision{Caller: b, Kind: kind, Need: name, Decision: "granted"}
	}
	changed := func(kind, code, message string) local.Decision {
		return local.Decision{Kind: kind, Decision: "changed", Code: code, Message: message}
	}
	dora := func(code, message string) local.Decision {
		return local.Decision{Caller: "spiffe://demo.flor/user/dora", Kind: "control", Decision: "granted", Code: code, Message: message}
	}
	const as = "can run processes of another user"
	operate := func(args ...string) func(*testing.T) error {
		return func(t *testing.T) error { _, err := c.florctl(t, args...); return err }
	}
	listed := func(args ...string) func(*testing.T) error {
		return func(t *testing.T) error {
			out, err := c.florctl(t, append(args, "--wait", "0s", "--key", c.Path("operator", "signing.key"))...)
			if strings.Contains(out, "is offered") { // hosts that do not run here have not reported the list
				return nil
			}
			return err
		}
	}
	posted := func(path, body string) func(*testing.T) error {
		return func(t *testing.T) error { return c.post(t, path, body) }
	}
	const grouping = `{"member":"spiffe://demo.flor/service/wiki","role":"role:x"}`
	key := c.Path("operator", "signing.key")
	var published string // serial of the version that was published first
	for _, act := range []struct {
		name string
		do   func(t *testing.T) error // nil for an action that was taken when the cluster started
		row  local.Decision
		root string
	}{
		{name: "a policy comes into force", row: changed("policy", "in-force", "policy of serial")},
		{name: "an issuing certificate comes into force", row: changed("cert", "in-force", "issuing certificate")},
		{name: "a version is published", row: changed("config", "in-force", "")},
		{name: "the provider's own SVID", row: changed("cert", "own-svid", "own SVID")},
		{
			name: "an issue", do: func(t *testing.T) error { return c.enrol(t, c.b) },
			row: local.Decision{Caller: b, Kind: "cert", Need: "cert-node", Decision: "granted", Enrolment: true},
		},
		{name: "a renewal", do: need("cert-node"), row: granted("cert", "cert-node")},
		{name: "a certificate of a service", do: need("cert-service-wiki"), row: granted("cert", "cert-service-wiki")},
		{name: "a client's secret", do: need("oidc-wiki"), row: granted("oidc", "oidc-wiki")},
		{name: "a file", do: need("file-wiki-password"), row: granted("file", "file-wiki-password")},
		{name: "tokens", do: need("jwt-service-wiki"), row: granted("jwt", "jwt-service-wiki")},
		{
			name: "documents", do: func(t *testing.T) error { _, err := c.client(t, c.b, "config").Artifact(t.Context()); return err },
			row: granted("config", ""),
		},
		{
			name: "a refusal", do: func(t *testing.T) error {
				return refused(c.request(t, c.c, "file-wiki-password", "file", map[string]string{"ref": "wiki/password"}))
			},
			row: local.Decision{Caller: "spiffe://demo.flor/node/c", Decision: "denied", Code: hostapi.CodeNotGranted.Name},
		},
		{
			name: "a refusal of a stranger", do: func(t *testing.T) error {
				client := c.client(t, c.b, "config")
				client.SVID = kit.NewCA().Issue(kit.ID("node/b"), time.Hour)
				_, err := client.Artifact(t.Context())
				return refused(err)
			},
			row: local.Decision{Decision: "denied", Code: hostapi.CodeUntrusted.Name},
		},
		{
			name: "an operator's rotation", root: as,
			do:  func(t *testing.T) error { return c.post(t, "/v1/rotate", `{"host":"b","need":"oidc-wiki"}`) },
			row: dora("rotate", ""),
		},
		{
			name: "a policy of a tenant at run time", root: as,
			do: operate("tenant", "policy", "add", "acme", "role:x", "cache.read", "namespace:acme/payments"), row: dora("policy-add", "tenant acme has at run time"),
		},
		{
			name: "a grouping of a tenant at run time", root: as,
			do: posted("/v1/tenants/acme/groupings", grouping), row: dora("grouping-add", "service/wiki role:x"),
		},
		{
			name: "a grouping that is removed", root: as,
			do: posted("/v1/tenants/acme/groupings/remove", grouping), row: dora("grouping-remove", "no longer has"),
		},
		{
			name: "a policy that is removed", root: as,
			do: posted("/v1/tenants/acme/policies/remove", `{"subject":"role:x","action":"cache.read","object":"namespace:acme/payments"}`), row: dora("policy-remove", "no longer has"),
		},
		{
			name: "the first administrators of a tenant", do: c.bootstrap,
			row: local.Decision{Caller: "this host, at the bootstrap socket", Kind: "token", Decision: "granted", Code: "tenant-bootstrap", Message: "user/alice"},
		},
		{name: "an operator's token", root: as, do: operate("join", "token", "create", "--host", "h"), row: dora("token-create", `for "h"`)},
		{name: "an end of a token", root: as, do: c.endToken, row: dora("token-revoke", `for "h" is revoked`)},
		{name: "a join that is rejected", root: as, do: c.rejectJoin, row: dora("join-reject", "is rejected as spiffe://demo.flor/node/h")},
		{
			name: "a version of an operator's", root: as, do: func(t *testing.T) (err error) {
				published, err = c.publishWaves(t, key)
				return err
			}, row: dora("publish", "waves"),
		},
		{name: "a rollout that is paused", root: as, do: operate("rollout", "pause"), row: dora("rollout", "paused")},
		{name: "a rollout that is resumed", root: as, do: operate("rollout", "resume"), row: dora("rollout", "active")},
		{name: "a wave of a rollout", root: as, row: changed("config", "rollout", "active, wave 1 of")},
		{name: "a rollout that is aborted", root: as, do: operate("rollout", "abort"), row: dora("rollout", "aborted")},
		{
			name: "a rollback", root: as,
			do:  func(t *testing.T) error { _, err := c.florctl(t, "rollback", published, "--key", key); return err },
			row: dora("rollback", ""),
		},
		{name: "a revocation", root: as, do: listed("revoke", "user/eve"), row: dora("revoke", "revoke spiffe://demo.flor/user/eve")},
		{name: "a reinstatement", root: as, do: listed("reinstate", "user/eve"), row: dora("reinstate", "reinstate spiffe://demo.flor/user/eve")},
		{name: "a suspension", root: as, do: listed("suspend", "user/frank"), row: dora("suspend", "suspend spiffe://demo.flor/user/frank")},
		{name: "an end of a suspension", root: as, do: listed("unsuspend", "user/frank"), row: dora("unsuspend", "unsuspend spiffe://demo.flor/user/frank")},
		{
			name: "what a person on a host accepts of an audit log", do: c.acceptLog,
			row: local.Decision{Caller: b, Kind: "config", Decision: "changed", Code: "audit-accepted", Message: "2 rows are gone"},
		},
	} {
		t.Run(strings.ReplaceAll(act.name, " ", "-"), func(t *testing.T) {
			if act.root != "" {
				agenttest.Root(t, act.root)
			}
			var since time.Time
			if act.do != nil {
				since = time.Now()
				if err := act.do(t); err != nil {
					t.Fatal(err)
				}
			}
			c.wantRow(t, since, act.row)
		})
	}
}

// wantRow checks that an action since a time has added an expected row to the audit log of provider
// p.
func (c *cluster) wantRow(t *testing.T, since time.Time, row local.Decision) {
	t.Helper()
	kit.Succeeds(t, "an audit row", func() error {
		rows := c.audit(t, since)
		if !slices.ContainsFunc(rows, func(d local.Decision) bool { return matches(d, row) }) {
			return fmt.Errorf("no audit row %s; since then came %+v", describe(row), rows)
		}
		return nil
	})
}

// refused returns an error if its argument is nil, that is, if an action was not refused.
func refused(err error) error {
	if err == nil {
		return errors.New("it was not refused")
	}
	return nil
}

// post sends a request of Dora to the control API through the forwarders.
func (c *cluster) post(t *testing.T, path, body string) error {
	text := fmt.Sprintf("POST %s HTTP/1.1\r\nConnection: close\r\nHost: florete-control.p.demo.flor.rete\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	return kit.Poll(t.Context(), func() error {
		answer, err := c.sayAs(t, uidDora, spiffe.ControlService, text)
		if !strings.HasPrefix(answer, "HTTP/1.1 200") {
			return fmt.Errorf("%s: %w", answer, errors.Join(err, context.DeadlineExceeded))
		}
		return nil
	})
}

// bootstrap makes a person the first administrator of the tenant acme, as root on host p.
func (c *cluster) bootstrap(t *testing.T) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.bootstrapSocket())
	}}}
	answer, err := client.Post("http://bootstrap/v1/tenants/acme/bootstrap", "application/json", strings.NewReader(`{"admins":["spiffe://demo.flor/user/alice"]}`))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// acceptLog makes host b accept the fault that it has found in an audit log of provider p.
func (c *cluster) acceptLog(t *testing.T) error {
	l := c.b.Layout()
	before, _ := os.ReadFile(l.WitnessedFile())
	t.Cleanup(func() {
		_ = os.Remove(l.AcceptedFile())
		_ = os.Remove(l.WitnessedFile())
		if before != nil {
			_ = os.WriteFile(l.WitnessedFile(), before, 0o644)
		}
	})
	fault := kit.JSON([]hostdir.Witnessed{{Provider: "p", Kind: "cert", Size: 5, Fault: "2 rows are gone", Since: unixtime.Unix(1784011430)}})
	if err := os.WriteFile(l.WitnessedFile(), fault, 0o644); err != nil {
		return err
	}
	flor := func(args ...string) (string, error) {
		return c.Run(t.Context(), filepath.Join(c.Bin, "flor"), append(args, "--state", string(l))...)
	}
	if out, err := flor("witness"); err == nil || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("flor witness: %s, %v", out, err)
	}
	if _, err := flor("witness", "accept", "p", "cert", "--reason", "restored"); err != nil {
		return err
	}
	out, err := flor("witness")
	if err == nil && !strings.Contains(out, "accepted: 2 rows are gone") {
		err = fmt.Errorf("flor witness: %s", out)
	}
	return err
}
