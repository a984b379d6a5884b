package attacks

import (
	"encoding/json"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// TestProvider attacks provider p over the network through its port.
func TestProvider(t *testing.T) {
	run(t, []attack{
		{
			name: "documents of another host",
			try: func(t *testing.T, c *cluster) error {
				client := c.client(t, c.c, "config")
				client.Node = c.b.Manifest.Identity.ID
				_, err := client.Artifact(t.Context())
				return err
			},
			refusal: "not-granted",
			row:     local.Decision{Caller: "spiffe://demo.flor/node/c", Kind: "config", Code: hostapi.CodeNotGranted.Name},
		},
		{
			name: "certificate of a service on another host",
			try: func(t *testing.T, c *cluster) error {
				return c.request(t, c.c, "cert-shared-echo", "cert", hostapi.CertBody{ID: kit.ID("service/echo"), CSR: kit.CSR(kit.ID("service/echo"), kit.NewKey())})
			},
			refusal: "not-granted",
			row:     local.Decision{Caller: "spiffe://demo.flor/node/c", Need: "cert-shared-echo", Code: hostapi.CodeNotGranted.Name},
		},
		{
			name: "certificate of another identity under a need of its own",
			try: func(t *testing.T, c *cluster) error {
				return c.request(t, c.c, "cert-user-alice", "cert", hostapi.CertBody{ID: kit.ID("service/echo"), CSR: kit.CSR(kit.ID("service/echo"), kit.NewKey())})
			},
			refusal: "mismatch",
			row:     local.Decision{Caller: "spiffe://demo.flor/node/c", Need: "cert-user-alice", Code: hostapi.CodeMismatch.Name},
		},
		{
			name: "secret file of another host",
			try: func(t *testing.T, c *cluster) error {
				return c.request(t, c.c, "file-wiki-password", "file", map[string]string{"ref": "wiki/password"})
			},
			refusal: "not-granted",
			row:     local.Decision{Caller: "spiffe://demo.flor/node/c", Need: "file-wiki-password", Code: hostapi.CodeNotGranted.Name},
		},
		{
			name: "node certificate of another CA",
			try: func(t *testing.T, c *cluster) error {
				client := c.client(t, c.b, "config")
				client.SVID = kit.NewCA().Issue(kit.ID("node/b"), time.Hour)
				_, err := client.Artifact(t.Context())
				return err
			},
			refusal: "untrusted",
			row:     local.Decision{Code: hostapi.CodeUntrusted.Name},
		},
		{
			name: "node certificate that a user's key signed",
			try: func(t *testing.T, c *cluster) error {
				alice := c.svid(t, c.c, "cert-user-alice")
				client := c.client(t, c.b, "config")
				client.SVID = signedBy(t, alice, kit.ID("node/b"))
				_, err := client.Artifact(t.Context())
				return err
			},
			refusal: "untrusted",
			row:     local.Decision{Code: hostapi.CodeUntrusted.Name},
		},
		{
			name: "user's certificate at a provider",
			try: func(t *testing.T, c *cluster) error {
				client := c.client(t, c.c, "config")
				client.SVID = c.svid(t, c.c, "cert-user-alice")
				_, err := client.Artifact(t.Context())
				return err
			},
			refusal: "denied",
			row:     local.Decision{Decision: "denied"},
		},
	})
}

// TestSeparation checks that certificates are still issued while the processes of all other kinds
// are stopped.
func TestSeparation(t *testing.T) {
	c := start(t)
	others := kinds[1:]
	for _, kind := range others {
		if err := c.p.Stop(local.ProviderPart(kind), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if err := errors.Join(c.p.Provide(others...), c.waitPages()); err != nil {
			t.Fatal(err)
		}
	}()
	if err := c.need(t, c.b, "cert-node", func(*hostapi.Client, *hostapi.Request) {}); err != nil {
		t.Error(err)
	}
	if err := c.need(t, c.b, "oidc-wiki", func(*hostapi.Client, *hostapi.Request) {}); hostapi.AsError(err).Code != hostapi.CodeUnavailable.Name {
		t.Errorf("got %v, want nothing to answer", err)
	}
}

// request sends a request for a need of host h, with the host's own certificate.
func (c *cluster) request(t *testing.T, h *local.Host, need, kind string, body any) error {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.client(t, h, kind).Do(t.Context(), hostapi.Path(kind), hostapi.Request{Need: need, Generation: 1, Body: b})
	return err
}
