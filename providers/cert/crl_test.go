package cert_test

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// TestCRL checks that issued certificates that the revocation list revokes are in a CRL that common
// software accepts. One entry of the list revokes all certificates of a node.
func TestCRL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("NOT RUN: no openssl in PATH, on Debian it is in the package openssl")
	}
	e := providertest.NewEnv(t, "ursula", "raishan")
	alice := kit.ID("user/alice")
	e.Grant(ursula, "cert-service-outline", "cert", map[string]any{"id": outline})
	e.Grant(ursula, "cert-user-alice", "cert", map[string]any{"id": alice})
	e.Start()
	c := e.Client(ursula)
	svid := func(c *hostapi.Client, need string, id spiffe.ID) []*x509.Certificate {
		t.Helper()
		a, err := c.Do(t.Context(), hostapi.Path("cert"), hostapi.Request{Need: need, Serial: providertest.Serial, Generation: 1, Body: body(id)})
		if err != nil {
			t.Fatal(err)
		}
		return chain(t, a)
	}
	node, service, user := svid(c, "cert-node", ursula), svid(c, "cert-service-outline", outline), svid(c, "cert-user-alice", alice)
	other := svid(e.Client(kit.ID("node/raishan")), "cert-node", kit.ID("node/raishan"))
	pass := c.Calls()
	defer pass.Close()
	list := func(number int64) (is *x509.RevocationList) {
		t.Helper()
		kit.Succeeds(t, "the CRL of the list", func() error {
			answer, err := e.Client(kit.ID("node/raishan")).Calls().CRL(t.Context(), "cert", "")
			if err != nil || answer.List != number {
				return fmt.Errorf("the CRL is of list %d, want %d: %w", answer.List, number, err)
			}
			lists, err := trust.ParseCRLs([]byte(answer.CRL))
			if err != nil || len(lists) != 1 || answer.Number != lists[0].Number.Text(16) {
				t.Fatalf("%+v, %v", answer, err)
			}
			is = lists[0]
			return nil
		})
		return is
	}
	key := kit.SigningKey("demo-1")
	revoke := func(number int64, targets ...revocation.Target) *x509.RevocationList {
		t.Helper()
		kit.WriteRevocations(e.Revocations(), kit.Revocations(number, key, targets...))
		return list(number)
	}
	verify := func(what string, chain []*x509.Certificate, l *x509.RevocationList, want string) {
		t.Helper()
		if got := openssl(t, e.Root.Certificate, chain, l, time.Now()); !strings.Contains(got, want) {
			t.Errorf("openssl of %s: %s, want %q", what, got, want)
		}
	}

	none := list(0)
	verify("ursula while nothing is revoked", node, none, ": OK")
	first := revoke(1, revocation.Target{ID: ursula})
	verify("ursula", node, first, "certificate revoked")
	verify("what its service was given", service, first, "certificate revoked")
	verify("what its user was given", user, first, "certificate revoked")
	verify("raishan", other, first, ": OK")
	if first.Number.Cmp(none.Number) <= 0 || len(first.RevokedCertificateEntries) < 3 {
		t.Errorf("number %s after %s, %d entries", first.Number, none.Number, len(first.RevokedCertificateEntries))
	}
	if lifetime := first.NextUpdate.Sub(first.ThisUpdate); lifetime < 7*24*time.Hour {
		t.Errorf("good for %s", lifetime)
	}
	e.Restart()
	if again := list(1); again.Number.Cmp(first.Number) != 0 {
		t.Errorf("signed anew by a restart: number %s after %s", again.Number, first.Number)
	}
	second := revoke(2, revocation.Target{ID: ursula}, revocation.Target{Certificates: []string{trust.SerialNumber(other[0])}})
	verify("raishan by its serial number", other, second, "certificate revoked")
	for _, was := range first.RevokedCertificateEntries {
		for _, is := range second.RevokedCertificateEntries {
			if was.SerialNumber.Cmp(is.SerialNumber) == 0 && !was.RevocationTime.Equal(is.RevocationTime) {
				t.Errorf("%x was revoked %s, now %s", is.SerialNumber, was.RevocationTime, is.RevocationTime)
			}
		}
	}
	third := revoke(3, revocation.Target{ID: alice})
	verify("ursula, reinstated", node, third, ": OK")
	verify("alice everywhere", user, third, "certificate revoked")

	suspended := revocation.Next(nil, "demo", time.Now(), revocation.Lifetime)
	suspended.Number = 4
	if err := revocation.Suspend(suspended, ursula); err != nil {
		t.Fatal(err)
	}
	signed, err := revocation.Sign(suspended, key)
	if err != nil {
		t.Fatal(err)
	}
	kit.WriteRevocations(e.Revocations(), signed)
	held := list(4)
	verify("ursula, suspended", node, held, "certificate revoked")
	for _, x := range held.RevokedCertificateEntries {
		if x.ReasonCode != 6 {
			t.Errorf("%x has reason %d, want 6, certificateHold", x.SerialNumber, x.ReasonCode)
		}
	}

	t.Log("another issuing CA has the same name: software finds its CRL by the key")
	b := e.Beside("horrible")
	b.Start()
	raishan := b.Client(kit.ID("node/raishan"))
	mixed := svid(raishan, "cert-node", kit.ID("node/raishan"))
	var answer hostapi.CRL
	kit.Succeeds(t, "its CRL", func() (err error) {
		answer, err = raishan.Calls().CRL(t.Context(), "cert", "")
		return err
	})
	lists, err := trust.ParseCRLs([]byte(answer.CRL))
	if err != nil || len(lists) != 1 {
		t.Fatal(lists, err)
	}
	verify("one of another CA with the first one's CRL", mixed, held, "unable to get certificate CRL")
	if got := openssl(t, e.Root.Certificate, mixed, lists[0], time.Now(), held); !strings.Contains(got, ": OK") {
		t.Errorf("with both CRLs: %s", got)
	}
	if got := openssl(t, e.Root.Certificate, node, held, time.Now(), lists[0]); !strings.Contains(got, "certificate revoked") {
		t.Errorf("with both CRLs: %s", got)
	}
}

// openssl returns the result of openssl verifying a chain with CRLs.
func openssl(t *testing.T, root *x509.Certificate, chain []*x509.Certificate, l *x509.RevocationList, at time.Time, more ...*x509.RevocationList) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"root.pem": ca.EncodeCertificates(root), "leaf.pem": ca.EncodeCertificates(chain[0]), "issuing.pem": ca.EncodeCertificates(chain[1:]...),
		"crl.pem": trust.EncodeCRLs(append(more, l)...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "openssl", "verify", "-crl_check", "-attime", strconv.FormatInt(at.Unix(), 10),
		"-CAfile", "root.pem", "-untrusted", "issuing.pem", "-CRLfile", "crl.pem", "leaf.pem")
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	return string(bytes.TrimSpace(out))
}

// TestIssuedKept checks that each SVID, including the provider's own, is recorded in the
// transaction that issues it, and that the record is kept until the SVID expires.
func TestIssuedKept(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Provide(cert.Name, map[string]any{"lifetime": 10})
	e.Start()
	if err := renew(t, e.Client(ursula)); err != nil {
		t.Fatal(err)
	}
	kit.Succeeds(t, "both to be on record", func() error {
		kept, _, err := e.Store.List(t.Context(), "cert/issued/")
		if err != nil {
			t.Fatal(err)
		}
		of := map[spiffe.ID]string{}
		for _, k := range kept {
			var is trust.Issued
			if err := strictjson.Decode(k.Value, &is); err != nil {
				t.Fatal(err)
			}
			of[is.ID] = is.Node
			if !strings.HasSuffix(k.Key, "-"+is.Serial) || is.Until.Sub(is.At.Time) > 20*time.Second {
				t.Errorf("%s: %+v", k.Key, is)
			}
		}
		if of[ursula] == "ursula" && of[e.Provider().ID] == e.Policy.Host {
			return nil
		}
		return fmt.Errorf("on record: %v", of)
	})
	own := 0
	for _, r := range e.Rows() {
		if r.Outcome == server.Changed && r.Code == "own-svid" && r.Caller == e.Provider().ID.String() && r.Detail["certificate"] != "" {
			own++
		}
	}
	if own == 0 {
		t.Error("no audit row of the provider's own SVID")
	}
}

// TestCRLOfItsOwn checks that the CRL of an issuing CA contains no certificates of another issuing
// CA, even if both CAs share a store.
func TestCRLOfItsOwn(t *testing.T) {
	a, b := replicas(t, "ursula", "raishan")
	own, err := a.Client(ursula).Do(t.Context(), hostapi.Path("cert"), hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(ursula)})
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Client(ursula).Do(t.Context(), hostapi.Path("cert"), hostapi.Request{Need: "cert-service-outline", Serial: providertest.Serial, Generation: 1, Body: body(outline)})
	if err != nil {
		t.Fatal(err)
	}
	caller := a.Client(kit.ID("node/raishan")).Calls()
	kit.WriteRevocations(a.Revocations(), kit.Revocations(1, kit.SigningKey("demo-1"), revocation.Target{ID: ursula}))
	var is hostapi.CRL
	kit.Succeeds(t, "the CRL of the list", func() error {
		if is, err = caller.CRL(t.Context(), "cert", ""); is.List != 1 {
			return fmt.Errorf("the CRL is of list %d: %w", is.List, err)
		}
		return nil
	})
	lists, err := trust.ParseCRLs([]byte(is.CRL))
	if err != nil || len(lists) != 1 {
		t.Fatal(lists, err)
	}
	has := func(c *x509.Certificate) bool {
		return slices.ContainsFunc(lists[0].RevokedCertificateEntries, func(e x509.RevocationListEntry) bool { return e.SerialNumber.Cmp(c.SerialNumber) == 0 })
	}
	if !has(chain(t, own)[0]) || has(chain(t, other)[0]) {
		t.Errorf("of its own %v, of another CA %v", has(chain(t, own)[0]), has(chain(t, other)[0]))
	}
}
