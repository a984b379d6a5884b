package attacks

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// control calls the control API of provider p, as florctl --via ssh does.
func (c *cluster) control(ctx context.Context, about, v any, method, path string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Bin, "flor-provider"), "control", method, path, "--settings", filepath.Join(c.p.Dir, "provider.hujson"))
	var problem bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(kit.JSON(about)), &problem
	out, err := cmd.Output()
	if err != nil {
		return errors.New(problem.String())
	}
	return json.Unmarshal(out, v)
}

// token creates a join token and registers it at provider p. The token lets machines join as the
// given hosts.
func (c *cluster) token(t *testing.T, hosts string, uses int, lifetime time.Duration, approves bool) hostapi.JoinToken {
	t.Helper()
	token, err := hostapi.NewJoinToken("p")
	if err != nil {
		t.Fatal(err)
	}
	record := join.Token{ID: hostapi.TokenID(token.Public()), Hosts: hosts, Uses: uses, Until: unixtime.Of(time.Now().Add(lifetime))}
	if approves {
		text := string(kit.JSON(trust.JoinGrant{
			Schema: trust.JoinGrantSchema, Format: document.NewestFormat, Cluster: "sec", Node: kit.ID("node/" + hosts), Token: token.Public(), Until: record.Until,
		}))
		record.Grant = &trust.SignedGrant{Grant: text, Signature: sign(t, c.signingKey(t), trust.JoinGrantText(text))}
	}
	if err := c.control(t.Context(), record, &record, "POST", "/v1/tokens"); err != nil {
		t.Fatal(err)
	}
	return token
}

func (c *cluster) signingKey(t *testing.T) signature.SecretKey {
	t.Helper()
	key, err := signature.LoadSecretKey(strings.TrimSpace(string(kit.ReadFile(c.Path("operator", "signing.key")))))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, key signature.SecretKey, text string) string {
	t.Helper()
	sig, err := key.Sign(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	return sig.String()
}

// admission returns a signed admission of a device as a node.
func admission(t *testing.T, key signature.SecretKey, node, device string) *trust.SignedAdmission {
	text := string(kit.JSON(trust.NewAdmission("sec", kit.ID("node/"+node), device, time.Now())))
	return &trust.SignedAdmission{Admission: text, Signature: sign(t, key, trust.AdmissionText(text))}
}

// device returns a client for a machine that has no SVID. The machine signs its requests with an
// SSH key.
func (c *cluster) device(t *testing.T, node, kind string, key ssh.Signer) *hostapi.Client {
	client := c.client(t, c.b, kind)
	client.Node, client.SVID, client.HostKey = kit.ID("node/"+node), nil, key
	return client
}

// requested returns the newest join request of a host that provider p has received.
func (c *cluster) requested(t *testing.T, host string) (r join.Request) {
	t.Helper()
	var all control.Joins
	if err := c.control(t.Context(), nil, &all, "GET", "/v1/joins"); err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Joins {
		if r.Host == host {
			return r
		}
	}
	return r
}

// machine starts activation on a host that joins with a token. The activation waits until the host
// is admitted.
func (c *cluster) machine(t *testing.T, name, tpm string) *local.Host {
	t.Helper()
	h := &local.Host{Name: name, Dir: c.Path("hosts", name), Bin: c.Bin, TPM: tpm}
	err := errors.Join(os.MkdirAll(h.Dir, 0o700), os.WriteFile(filepath.Join(h.Dir, "hook"), []byte("#!/bin/sh\n"), 0o700),
		h.Deploy(c.Path("documents", name)), h.Activate())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(h.Stop("join", syscall.SIGKILL), h.Stop("activate", syscall.SIGTERM)) })
	kit.Eventually(t, "its activation to want a token", func() bool { // flor join needs the documents that activation installs
		all, err := h.Needs()
		return err == nil && all["cert-node"].Error != nil && all["cert-node"].Error.Code == hostapi.CodeJoin.Name
	})
	return h
}

// florJoin runs flor join on a host that is not admitted yet.
func florJoin(h *local.Host, args ...string) error {
	return h.Start("join", append([]string{"flor", "join", "--state", string(h.Layout()), "--refetch", h.Refetch(), "--tpm", cmp.Or(h.TPM, devicekey.None)}, args...)...)
}

// enrol requests the certificate of a node with a proof, as the node's activation does.
func enrol(t *testing.T, client *hostapi.Client) error {
	_, err := client.Enrol(t.Context(), hostapi.Request{Need: "cert-node", Generation: 1, Body: kit.JSON(hostapi.CertBody{ID: client.Node, CSR: kit.CSR(client.Node, kit.NewKey())})})
	return err
}

// TestJoin checks that a host whose SSH host key is not in the flake can join. It needs a token and
// the approval of an operator. It joins even if a process is killed at any step. Without both, no
// host can join.
func TestJoin(t *testing.T) {
	c := start(t)
	d := c.machine(t, "d", "")
	token := c.token(t, "[de]", 1, time.Hour, false)
	if err := florJoin(d, token.String()); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "its request", func() bool { return c.requested(t, "d").State == hostapi.JoinPending })

	t.Log("both sides are killed while it waits")
	_ = d.Stop("join", syscall.SIGKILL)
	if err := errors.Join(c.p.Stop(local.ProviderPart("config"), syscall.SIGKILL), c.p.Provide("config"), florJoin(d)); err != nil {
		t.Fatal(err)
	}
	r := c.requested(t, "d")
	if r.State != hostapi.JoinPending || r.Facts.System == "" || !strings.HasPrefix(r.Fingerprint(), "SHA256:") {
		t.Fatalf("got %+v", r)
	}
	if err := c.control(t.Context(), control.Decision{Admission: admission(t, kit.SigningKey("other-1"), "d", r.Device)}, &r, "POST", "/v1/joins/d"); err == nil || !strings.Contains(err.Error(), "does not verify") {
		t.Fatalf("approved by a key that nobody pins: %v", err)
	}
	if err := c.control(t.Context(), control.Decision{Admission: admission(t, c.signingKey(t), "d", r.Device)}, &r, "POST", "/v1/joins/d"); err != nil {
		t.Fatal(err)
	}
	kit.Succeeds(t, "its needs", d.Unfulfilled)
	for _, file := range []string{d.Layout().DeviceKey(), d.Layout().Admission()} {
		if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := os.Stat(d.Layout().JoinRequest()); err == nil {
		t.Error("the token is still on the host")
	}
	for _, row := range []local.Decision{
		{Decision: "granted", Code: "token-create"}, {Decision: "granted", Code: "join-approve"},
		{Caller: "spiffe://demo.flor/node/d", Kind: "config", Decision: "granted", Enrolment: true},
		{Caller: "spiffe://demo.flor/node/d", Kind: "cert", Decision: "granted", Enrolment: true},
	} {
		c.wantRow(t, time.Time{}, row)
	}
	svid := c.svid(t, d, "cert-node")
	if got := trust.GivenToDevice(svid.Leaf); got != r.Fingerprint() {
		t.Errorf("the certificate is of device %q, want %q", got, r.Fingerprint())
	}
	for _, secret := range []string{token.Public(), hostapi.TokenID(token.Public())} {
		if bytes.Contains(svid.Leaf.Raw, []byte(secret)) || strings.Contains(string(kit.ReadFile(d.Layout().Admission())), secret) {
			t.Error("the token is part of what the host is")
		}
	}

	t.Log("its manifest is applied again: it stays who it is")
	device := kit.ReadFile(d.Layout().DeviceKey())
	if err := errors.Join(d.Stop("activate", syscall.SIGKILL), d.Deploy(c.Path("documents", "d")), d.Activate()); err != nil {
		t.Fatal(err)
	}
	kit.Succeeds(t, "its needs again", d.Unfulfilled)
	if !bytes.Equal(device, kit.ReadFile(d.Layout().DeviceKey())) || c.requested(t, "d").Requested != r.Requested {
		t.Error("it joined again")
	}

	key, err := ssh.ParsePrivateKey(kit.ReadFile(d.Layout().DeviceKey()))
	if err != nil {
		t.Fatal(err)
	}
	var admitted trust.SignedAdmission
	if err := json.Unmarshal(kit.ReadFile(d.Layout().Admission()), &admitted); err != nil {
		t.Fatal(err)
	}
	thief := kit.NewHostKey()
	attempt := func(node string, key ssh.Signer, token hostapi.JoinToken) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error {
			_, err := c.device(t, node, "config", key).Join(t.Context(), hostreport.Facts{Capabilities: []string{}}, &token)
			return err
		}
	}
	refusedToken := func(node, message string) local.Decision {
		return local.Decision{Caller: "spiffe://demo.flor/node/" + node, Kind: "config", Decision: "denied", Code: hostapi.CodeToken.Name, Message: message}
	}
	unknown, _ := hostapi.NewJoinToken("p")
	short := c.token(t, "e", 1, time.Second, false)
	revoked := c.token(t, "e", 1, time.Hour, false)
	if err := c.control(t.Context(), nil, new(join.Token), "POST", "/v1/tokens/"+hostapi.TokenID(revoked.Public())+"/revoke"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // wait until the short token has expired
	run(t, []attack{
		{
			name: "a join token used twice", try: attempt("e", thief, token),
			refusal: "has no uses left, of 1", row: refusedToken("e", "has no uses left, of 1"),
		},
		{
			name: "a join token for another host", try: attempt("e", thief, c.token(t, "d", 1, time.Hour, false)),
			refusal: `is for "d"`, row: refusedToken("e", `is for "d"`),
		},
		{
			name: "a join token that is over", try: attempt("e", thief, short),
			refusal: "expired at", row: refusedToken("e", "expired at"),
		},
		{
			name: "a join token that was revoked", try: attempt("e", thief, revoked),
			refusal: "was revoked", row: refusedToken("e", "was revoked"),
		},
		{
			name: "another device with a good token for a host that has joined", try: attempt("d", thief, c.token(t, "d", 1, time.Hour, false)),
			refusal: "is spiffe://demo.flor/node/d", row: local.Decision{Caller: "spiffe://demo.flor/node/d", Decision: "denied", Code: hostapi.CodeJoin.Name},
		},
		{
			name: "a token for a host whose SSH host key the flake has", try: attempt("b", thief, c.token(t, "*", 1, time.Hour, false)),
			refusal: "the policy here lets no device join as it",
		},
		{
			name: "a join request replayed on another connection",
			try: func(t *testing.T, c *cluster) error {
				return replayedJoin(t, c, thief, c.token(t, "e", 1, time.Hour, false))
			},
			refusal: "signature of the device", row: local.Decision{Caller: "spiffe://demo.flor/node/e", Decision: "denied", Code: hostapi.CodeUntrusted.Name},
		},
		{
			name: "an admission with another device's key",
			try: func(t *testing.T, c *cluster) error {
				client := c.device(t, "d", "cert", thief)
				client.Admission = &admitted
				return enrol(t, client)
			},
			refusal: "want a proof by host key", row: local.Decision{Caller: "spiffe://demo.flor/node/d", Decision: "denied", Code: hostapi.CodeUntrusted.Name},
		},
		{
			name: "an admission as another node",
			try: func(t *testing.T, c *cluster) error {
				client := c.device(t, "e", "cert", key)
				client.Admission = &admitted
				return enrol(t, client)
			},
			refusal: "in cluster", row: local.Decision{Caller: "spiffe://demo.flor/node/e", Decision: "denied", Code: hostapi.CodeJoin.Name},
		},
		{
			name: "an admission that no operator signed",
			try: func(t *testing.T, c *cluster) error {
				client := c.device(t, "e", "cert", thief)
				client.Admission = admission(t, kit.SigningKey("sec-1"), "e", strings.TrimSpace(string(ssh.MarshalAuthorizedKey(thief.PublicKey()))))
				return enrol(t, client)
			},
			refusal: "does not verify", row: local.Decision{Caller: "spiffe://demo.flor/node/e", Decision: "denied", Code: hostapi.CodeJoin.Name},
		},
		{
			name: "no admission at all",
			try: func(t *testing.T, c *cluster) error {
				return enrol(t, c.device(t, "e", "cert", thief))
			},
			refusal: "and no admission", row: local.Decision{Caller: "spiffe://demo.flor/node/e", Decision: "denied", Code: hostapi.CodeJoin.Name},
		},
		{
			name: "the certificate of a joined host without its device key",
			try: func(t *testing.T, c *cluster) error {
				client := c.device(t, "d", "config", thief)
				client.SVID = svid
				_, err := client.Artifact(t.Context())
				return err
			},
			refusal: "want a proof by its device key", row: local.Decision{Caller: "spiffe://demo.flor/node/d", Decision: "denied", Code: hostapi.CodeDeviceKey.Name},
		},
	})

	t.Log("a token that approves by itself")
	e := c.machine(t, "e", "")
	if err := florJoin(e, c.token(t, "e", 1, time.Hour, true).String()); err != nil {
		t.Fatal(err)
	}
	kit.Succeeds(t, "the needs of e", e.Unfulfilled)
	if r := c.requested(t, "e"); r.State != hostapi.JoinApproved || !strings.Contains(r.By, "join token") {
		t.Errorf("got %+v", r)
	}
	run(t, []attack{
		{
			name: "join tokens that are guessed",
			try: func(t *testing.T, c *cluster) error {
				for range 20 {
					if err := attempt("e", thief, unknown)(t, c); hostapi.AsError(err).Code == hostapi.CodeBusy.Name {
						return err
					}
				}
				return nil
			},
			refusal: "join tokens from this network were refused", row: refusedToken("e", ""),
		},
	})
}

// replayedJoin sends a join request that was signed for another connection.
func replayedJoin(t *testing.T, c *cluster, key ssh.Signer, token hostapi.JoinToken) error {
	client := c.device(t, "e", "config", key)
	conn, err := tls.Dial("tcp", client.Provider.Addresses[0], &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	j := hostapi.Join{Node: client.Node, Device: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))), Facts: kit.JSON(hostreport.Facts{Capabilities: []string{}}), Token: token.Public()}
	statement := j.Statement(client.Provider.ID, make([]byte, 32))
	secret, err := token.Secret()
	if err != nil {
		t.Fatal(err)
	}
	j.TokenSign = sign(t, secret, string(statement))
	sig, err := sshsig.Sign(bytes.NewReader(statement), key, sshsig.HashSHA512, hostapi.JoinNamespace)
	if err != nil {
		t.Fatal(err)
	}
	j.Signature = string(sshsig.Armor(sig))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://p"+hostapi.PathJoin, bytes.NewReader(kit.JSON(j)))
	if err != nil {
		t.Fatal(err)
	}
	if err := request.Write(conn); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(string(b))
	}
	return err
}
