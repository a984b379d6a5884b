package attacks

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// TestIdentity attacks provider p with files of a host's identity that accounts of the host can
// copy.
func TestIdentity(t *testing.T) {
	const b = "spiffe://demo.flor/node/b"
	var table []attack
	for _, need := range []string{"cert-node", "cert-service-wiki", "file-wiki-password", "oidc-wiki"} {
		table = append(table,
			attack{
				name: "copied SVID without the SSH host key: " + need,
				try: func(t *testing.T, c *cluster) error {
					return c.need(t, c.b, need, func(client *hostapi.Client, _ *hostapi.Request) { client.HostKey = nil })
				},
				refusal: "device-key",
				row:     local.Decision{Caller: b, Need: need, Decision: "denied", Code: hostapi.CodeDeviceKey.Name, Message: "no device proof"},
			},
			attack{
				name: "copied SVID with the SSH host key of another host: " + need,
				try: func(t *testing.T, c *cluster) error {
					return c.need(t, c.b, need, func(client *hostapi.Client, _ *hostapi.Request) { client.HostKey = c.client(t, c.c, "cert").HostKey })
				},
				refusal: "device-key",
				row:     local.Decision{Caller: b, Need: need, Decision: "denied", Code: hostapi.CodeDeviceKey.Name, Message: "want one by its SSH host key"},
			},
			attack{
				name: "highest generation: " + need,
				try: func(t *testing.T, c *cluster) error {
					return c.need(t, c.b, need, func(_ *hostapi.Client, r *hostapi.Request) { r.Generation = math.MaxInt })
				},
				refusal: "mismatch",
				row:     local.Decision{Caller: b, Need: need, Decision: "denied", Code: hostapi.CodeMismatch.Name, Message: "generation 9223372036854775807"},
			})
	}
	table = append(table, attack{
		name: "unknown endpoint",
		try: func(t *testing.T, c *cluster) error {
			_, err := c.client(t, c.b, "cert").Do(t.Context(), "/admin", hostapi.Request{Need: "x", Body: json.RawMessage(`{}`)})
			return err
		},
		refusal: "unknown-method",
		row:     local.Decision{Caller: b, Decision: "invalid", Code: hostapi.CodeUnknownMethod.Name, Message: "/admin"},
	}, attack{
		name: "certificate from the process that signs people in",
		try: func(t *testing.T, c *cluster) error {
			return c.need(t, c.b, "cert-node", func(client *hostapi.Client, _ *hostapi.Request) {
				client.Provider = c.b.Manifest.Providers["p"]["oidc"]
			})
		},
		refusal: "unknown-method",
		row:     local.Decision{Caller: b, Decision: "invalid", Code: hostapi.CodeUnknownMethod.Name, Message: "/cert/request"},
	}, attack{
		name: "the process that signs people in, in place of the one with the issuing key",
		try: func(t *testing.T, c *cluster) error {
			return c.need(t, c.b, "cert-node", func(client *hostapi.Client, _ *hostapi.Request) {
				client.Provider.Addresses = c.b.Manifest.Providers["p"]["oidc"].Addresses
			})
		},
		refusal: "florete-provider-cert: check its address",
	})
	run(t, table)
}

// need sends the request for a need of host h. The function change alters the request before it is
// sent.
func (c *cluster) need(t *testing.T, h *local.Host, name string, change func(*hostapi.Client, *hostapi.Request)) error {
	t.Helper()
	i := slices.IndexFunc(h.Manifest.Needs, func(n document.Need) bool { return n.ID == name })
	if i < 0 {
		t.Fatalf("%s has no need %s", h.Name, name)
	}
	n := h.Manifest.Needs[i]
	r := hostapi.Request{Need: n.ID, Generation: n.Generation, Body: n.Request}
	if n.Kind == "cert" {
		var body hostapi.CertBody
		if err := json.Unmarshal(n.Request, &body); err != nil {
			t.Fatal(err)
		}
		body.CSR = kit.CSR(body.ID, kit.NewKey())
		r.Body, _ = json.Marshal(body)
	}
	client := c.client(t, h, n.Kind)
	change(client, &r)
	_, err := client.Do(t.Context(), hostapi.Path(n.Kind), r)
	return err
}
