package attacks

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// TestRevokedReturns attacks a cluster as a host that joined with a token and was then revoked. No
// older key, certificate or file may let the host return, whether it comes from the host itself,
// from another host or from a provider.
func TestRevokedReturns(t *testing.T) {
	c := start(t)
	// These are the documents of an hour ago. They are offered to no host, but a host may go back
	// to them.
	if err := os.WriteFile(c.Path("cluster", "before"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), time.Now().Add(-time.Hour), "before", "before"); err != nil {
		t.Fatal(err)
	}
	h := c.machine(t, "h", "")
	token := c.token(t, "h", 3, time.Hour, false)
	restoreConfig := c.backup(t, "config")
	if err := florJoin(h, token.String()); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "its request", func() bool { return c.requested(t, "h").State == hostapi.JoinPending })
	if err := c.control(t.Context(), control.Decision{Admission: admission(t, c.signingKey(t), "h", c.requested(t, "h").Device)}, new(join.Request), "POST", "/v1/joins/h"); err != nil {
		t.Fatal(err)
	}
	kit.Succeeds(t, "its needs", h.Unfulfilled)
	svid := c.svid(t, h, "cert-node")
	if err := c.knock(t.Context(), "echo", svid); err != nil {
		t.Fatal(err)
	}
	device, err := ssh.ParsePrivateKey(kit.ReadFile(h.Layout().DeviceKey()))
	if err != nil {
		t.Fatal(err)
	}
	restoreCert := c.backup(t, "cert")

	was := c.offered(t)
	list := c.revoke(t, was, func(l *trust.Revocations) { revocation.Revoke(l, revocation.Target{ID: kit.ID("node/h")}) })
	open, err := list.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.offer(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	c.waitList(t, c.p, open.Number)
	c.waitList(t, c.b, open.Number)

	row := func(kind, need string) local.Decision {
		return local.Decision{Caller: "spiffe://demo.flor/node/h", Kind: kind, Need: need, Decision: "denied", Code: hostapi.CodeRevoked.Name}
	}
	joins := func(key ssh.Signer) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error {
			a, err := c.device(t, "h", "config", key).Join(t.Context(), hostreport.Facts{Capabilities: []string{}}, &token)
			if err == nil && a.State == hostapi.JoinRevoked {
				err = errors.New(a.Message)
			}
			return err
		}
	}
	requests := func(t *testing.T, _ *cluster) error {
		if err := os.RemoveAll(h.Layout().Need("cert-node")); err != nil {
			t.Fatal(err)
		}
		code, out, err := h.Once(t.Context())
		if code != 0 {
			err = fmt.Errorf("exit code %d, %w: %s", code, err, out)
		}
		return err
	}
	knocks := func(t *testing.T, c *cluster) error { return c.knock(t.Context(), "echo", svid) }
	if err := h.Stop("activate", syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	run(t, []attack{
		{name: "a revoked host with an old join token", try: joins(device), refusal: "node/h is revoked", row: row("config", "")},
		{name: "a revoked host with an old join token and another device key", try: joins(kit.NewHostKey()), refusal: "node/h is revoked", row: row("config", "")},
		{name: "a revoked host with its admission", try: requests, refusal: "node/h is revoked", row: row("cert", "cert-node")},
	})

	if err := h.Deploy(c.Path("before", "h")); err != nil {
		t.Fatal(err)
	}
	run(t, []attack{{name: "a revoked host with an older manifest", try: requests, refusal: "node/h is revoked", row: row("cert", "cert-node")}})

	back := func(documents string) {
		t.Helper()
		if err := errors.Join(c.b.Deploy(c.Path(documents, "b")), c.b.Activate()); err != nil {
			t.Fatal(err)
		}
		want, err := document.Read(c.Path(documents, "b"), document.DocManifest)
		if err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, "b to have them in force", func() bool {
			is, err := c.b.Layout().Manifest()
			return err == nil && is.Envelope.Serial == want.Envelope.Serial
		})
	}
	back("before")
	run(t, []attack{{name: "a revoked host at a forwarder whose generation was rolled back", try: knocks, refusal: "bad certificate"}})
	back("documents")

	restoreCert()
	kit.Eventually(t, "the restored provider of certificates", func() bool { return c.enrol(t, c.b) == nil })
	run(t, []attack{{name: "a revoked host after the database of certificates was restored", try: requests, refusal: "node/h is revoked", row: row("cert", "cert-node")}})
	restoreConfig()
	kit.Eventually(t, "the restored provider to offer the list", func() bool { return c.offered(t).List == list.List })
	run(t, []attack{{name: "a revoked host with an old join token, which a restored database has unused", try: joins(device), refusal: "node/h is revoked", row: row("config", "")}})

	again := c.revoke(t, list, func(l *trust.Revocations) {
		if err := revocation.Reinstate(l, revocation.Target{ID: kit.ID("node/h")}); err != nil {
			t.Error(err)
		}
	})
	if err := c.offer(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	c.waitList(t, c.p, open.Number+1)
	if err := joins(device)(t, c); err != nil {
		t.Errorf("reinstated: %v", err)
	}
}
