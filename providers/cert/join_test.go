package cert_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

var elm = kit.ID("node/elm") // a node that joins

// joining returns a provider at which elm may join, and the key that admits it.
func joining(t *testing.T) (*providertest.Env, signature.SecretKey) {
	t.Helper()
	e, key := providertest.NewEnv(t, "ursula"), kit.SigningKey("demo-1")
	e.Policy.Trust.SigningKeys = []string{key.ToPublicKey().String()}
	e.Policy.Devices = append(e.Policy.Devices, document.Device{ID: elm, Joins: true})
	e.Grant(elm, "cert-node", "cert", map[string]any{"id": elm})
	e.Grant(elm, "cert-service-outline", "cert", map[string]any{"id": outline})
	e.Start()
	return e, key
}

func signed(t *testing.T, key signature.SecretKey, text string) string {
	t.Helper()
	sig, err := key.Sign(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	return sig.String()
}

// admit admits the device of a client with a key.
func admit(t *testing.T, c *hostapi.Client, key signature.SecretKey, grant *trust.SignedGrant) {
	t.Helper()
	text := string(kit.JSON(trust.NewAdmission("demo", elm, kit.Authorized(c.HostKey.PublicKey()), time.Now())))
	c.Admission = &trust.SignedAdmission{Admission: text, Signature: signed(t, key, trust.AdmissionText(text)), Grant: grant}
}

// machine returns a client of another device that wants to join as elm.
func machine(e *providertest.Env) *hostapi.Client {
	c := e.Stranger(elm)
	c.HostKey = kit.NewHostKey()
	return c
}

func tryEnrol(t *testing.T, c *hostapi.Client) error {
	t.Helper()
	_, err := obtain(t, c, "cert-node", elm, func(ctx context.Context, _ string, r hostapi.Request) (hostapi.Answer, error) { return c.Enrol(ctx, r) })
	return err
}

// TestJoined checks that an admitted device can enrol, renew and enrol again, and that each
// certificate of the node names its key. Another device is refused until the first is revoked, and
// afterwards the first is refused.
func TestJoined(t *testing.T) {
	e, key := joining(t)
	first, second := machine(e), machine(e)
	providertest.WantError(t, tryEnrol(t, first), hostapi.CodeJoin)
	admit(t, first, kit.SigningKey("demo-1"), nil)
	providertest.WantError(t, tryEnrol(t, first), hostapi.CodeJoin)
	admit(t, first, key, nil)
	enrol(t, first)
	fingerprint := ssh.FingerprintSHA256(first.HostKey.PublicKey())
	if err := renew(t, first); err != nil {
		t.Fatal(err)
	}
	of, err := obtain(t, first, "cert-service-outline", outline, first.Do)
	if err != nil {
		t.Fatal(err)
	}
	for what, leaf := range map[string]string{"its own": trust.GivenToDevice(first.SVID.Leaf), "a service's": trust.GivenToDevice(of.Leaf)} {
		if leaf != fingerprint {
			t.Errorf("%s certificate is of device %q, want %q", what, leaf, fingerprint)
		}
	}
	enrol(t, first)

	thief := *first
	thief.HostKey = second.HostKey
	providertest.WantError(t, renew(t, &thief), hostapi.CodeDeviceKey)
	foreign := *first
	foreign.SVID = e.Issue(elm, time.Hour) // without a device
	providertest.WantError(t, renew(t, &foreign), hostapi.CodeDeviceKey)
	admit(t, second, key, nil)
	providertest.WantError(t, tryEnrol(t, second), hostapi.CodeJoin)

	kit.WriteRevocations(e.Revocations(), kit.Revocations(1, key, revocation.Target{Keys: []string{fingerprint}}))
	kit.Eventually(t, "the list to be in force", func() bool { return e.Policies.Revoked().InForce() == 1 })
	if err := e.Policies.Revoked().CheckChain(chainOf(t, of.Certificate), outline); err == nil {
		t.Error("the certificate of a service that it was given is not revoked with it")
	}
	providertest.WantError(t, renew(t, first), hostapi.CodeRevoked)
	providertest.WantError(t, tryEnrol(t, first), hostapi.CodeRevoked)
	enrol(t, second)
	var d cert.Device
	entry, err := e.Store.Get(t.Context(), "cert/device/elm")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(entry.Value, &d); err != nil || !d.Joined || d.SSHHostKey != kit.Authorized(second.HostKey.PublicKey()) {
		t.Errorf("got %+v, %v", d, err)
	}
}

// TestJoinedByToken checks that the holder of a token can admit a device as far as an operator's
// grant permits, until the token expires. A recorded device can enrol afterwards, too.
func TestJoinedByToken(t *testing.T) {
	e, key := joining(t)
	token, err := hostapi.NewJoinToken("drhorrible")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := token.Secret()
	if err != nil {
		t.Fatal(err)
	}
	grant := func(by signature.SecretKey, node spiffe.ID, until time.Time) *trust.SignedGrant {
		text := string(kit.JSON(trust.JoinGrant{Schema: trust.JoinGrantSchema, Format: document.NewestFormat, Cluster: "demo", Node: node, Token: token.Public(), Until: unixtime.Of(until)}))
		return &trust.SignedGrant{Grant: text, Signature: signed(t, by, trust.JoinGrantText(text))}
	}
	soon, over := time.Now().Add(time.Hour), time.Now().Add(-time.Second)
	c := machine(e)
	for what, g := range map[string]*trust.SignedGrant{
		"no grant":           nil,
		"a grant of oneself": grant(secret, elm, soon),
		"another node's":     grant(key, ursula, soon),
		"one that is over":   grant(key, elm, over),
	} {
		admit(t, c, secret, g)
		t.Log(what)
		providertest.WantError(t, tryEnrol(t, c), hostapi.CodeJoin)
	}
	admit(t, c, kit.SigningKey("token"), grant(key, elm, soon))
	providertest.WantError(t, tryEnrol(t, c), hostapi.CodeJoin)
	admit(t, c, secret, grant(key, elm, soon))
	enrol(t, c)
	admit(t, c, secret, grant(key, elm, over))
	enrol(t, c)
}

func chainOf(t *testing.T, der [][]byte) (certs []*x509.Certificate) {
	t.Helper()
	for _, b := range der {
		c, err := x509.ParseCertificate(b)
		if err != nil {
			t.Fatal(err)
		}
		certs = append(certs, c)
	}
	return certs
}
