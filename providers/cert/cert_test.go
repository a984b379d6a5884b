package cert_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

var (
	ursula  = kit.ID("node/ursula")
	outline = kit.ID("service/outline")
)

// body requests the SVID of id with a new key.
func body(id spiffe.ID) json.RawMessage {
	return kit.JSON(hostapi.CertBody{ID: id, CSR: kit.CSR(id, kit.NewKey())})
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Suite{
		Kind: "cert", Need: "cert-service-outline", Request: map[string]any{"id": outline},
		Body: func(t *testing.T) json.RawMessage { return body(outline) },
	})
}

func chain(t *testing.T, a hostapi.Answer) (certs []*x509.Certificate) {
	t.Helper()
	for rest := []byte(a.Values["svid"]); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return certs
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		certs = append(certs, c)
	}
}

// TestAnswer checks the issued SVID: the roots in the bundle verify its chain.
func TestAnswer(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Grant(ursula, "cert-service-outline", "cert", map[string]any{"id": outline})
	e.Start()
	r := hostapi.Request{Need: "cert-service-outline", Serial: providertest.Serial, Generation: 1, Body: body(outline)}
	a, err := e.Client(ursula).Do(t.Context(), hostapi.Path("cert"), r)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := trust.NewRoots(kit.Domain, []string{a.Values["bundle"]})
	if err != nil {
		t.Fatal(err)
	}
	certs := chain(t, a)
	id, err := hostapi.Peer(certs, roots, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	if err != nil || id != outline {
		t.Fatalf("got %v, %v", id, err)
	}
	if left := time.Until(time.Unix(a.Expires, 0)); left > 24*time.Hour || left < 24*time.Hour-time.Minute || certs[0].NotAfter.Unix() != a.Expires {
		t.Errorf("expires in %s, certificate until %s", left, certs[0].NotAfter)
	}
	row := e.Audit()[0]
	if row.Detail["id"] != outline.String() || row.Detail["certificate"] == "" || row.Detail["until"] == "" {
		t.Errorf("audit: %v", row.Detail)
	}
}

// TestRenew checks that a node can renew its SVID with its current SVID and a new key.
func TestRenew(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Start()
	c := e.Client(ursula)
	var last string
	for range 2 {
		a, err := c.Do(t.Context(), hostapi.Path("cert"), hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(ursula)})
		if err != nil {
			t.Fatal(err)
		}
		if a.Values["svid"] == last {
			t.Error("the SVID of the previous key")
		}
		last = a.Values["svid"]
	}
}

func TestMalformed(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	e.Start()
	for name, b := range map[string]string{
		"no CSR":    `{"id":"spiffe://demo.flor/node/ursula"}`,
		"bad CSR":   `{"csr":"x","id":"spiffe://demo.flor/node/ursula"}`,
		"other CSR": string(kit.JSON(map[string]any{"id": ursula, "csr": kit.CSR(outline, kit.NewKey())})),
	} {
		_, err := e.Client(ursula).Do(t.Context(), hostapi.Path("cert"), hostapi.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: json.RawMessage(b)})
		t.Run(name, func(t *testing.T) { providertest.WantError(t, err, hostapi.CodeMalformed) })
	}
}

func TestCompile(t *testing.T) {
	e := providertest.NewEnv(t, "ursula")
	key, err := sealedstore.New(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	issuer := cert.New(cert.Config{Key: key, Authority: func() (*ca.Authority, error) { return e.Issuing, nil }})
	if _, err := issuer.Compile(e.Policy); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*document.Policy){
		`lifetime 9, want 10 to 7776000 seconds`: func(p *document.Policy) { p.Kinds["cert"] = json.RawMessage(`{"lifetime":9}`) },
		`lifetime 9000000000000000000, want`:     func(p *document.Policy) { p.Kinds["cert"] = json.RawMessage(`{"lifetime":9000000000000000000}`) },
		`unknown field "life"`:                   func(p *document.Policy) { p.Kinds["cert"] = json.RawMessage(`{"life":9}`) },
		`sign it with a root that the policy of drhorrible trusts`: func(p *document.Policy) {
			p.Trust.Roots = []string{kit.NewCA().RootPEM()}
		},
	} {
		var p document.Policy
		if err := json.Unmarshal(kit.JSON(e.Policy), &p); err != nil {
			t.Fatal(err)
		}
		change(&p)
		if _, err := issuer.Compile(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
	}
}

// TestOwn checks, in virtual time, that the provider's own SVID is renewed after two thirds of its
// lifetime and never outlives the issuing CA.
func TestOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := providertest.NewEnv(t, "ursula")
		key, err := sealedstore.New(make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		var policy *cert.Policy
		issuer := cert.New(cert.Config{
			Key: key, Policy: func() *cert.Policy { return policy },
			Authority: func() (*ca.Authority, error) { return e.Issuing, nil },
		})
		if policy, err = issuer.Compile(e.Policy); err != nil {
			t.Fatal(err)
		}
		var last *x509.Certificate
		for i, c := range []struct {
			pass time.Duration
			same bool
		}{{0, false}, {0, true}, {15 * time.Hour, true}, {2 * time.Hour, false}, {15 * time.Hour, true}} {
			time.Sleep(c.pass)
			got, err := issuer.Certificate()
			if err != nil {
				t.Fatal(err)
			}
			if same := last != nil && got.Leaf.Equal(last); same != c.same {
				t.Errorf("step %d: the same %v, want %v", i, same, c.same)
			}
			if left := time.Until(got.Leaf.NotAfter); left < 8*time.Hour {
				t.Errorf("step %d: ends in %s", i, left)
			}
			last = got.Leaf
		}
		e.Renew(ca.IssuingLifetime)
		if got, err := issuer.Certificate(); err != nil || !bytes.Equal(got.Certificate[1], e.Issuing.Certificate.Raw) {
			t.Errorf("with another issuing certificate of the same key: still by the former, %v", err)
		}
		e.CA = kit.NewCA()
		e.Policy.Trust.Roots = []string{e.RootPEM()}
		if policy, err = issuer.Compile(e.Policy); err != nil {
			t.Fatal(err)
		}
		if got, err := issuer.Certificate(); err != nil || got.Leaf.CheckSignatureFrom(e.Issuing.Certificate) != nil {
			t.Errorf("with another root: still by the former, %v", err)
		}
		time.Sleep(time.Until(e.Issuing.Certificate.NotAfter) - time.Hour)
		got, err := issuer.Certificate()
		if err != nil || got.Leaf.NotAfter.After(e.Issuing.Certificate.NotAfter) {
			t.Fatalf("until %v, %v", got.Leaf.NotAfter, err)
		}
		time.Sleep(2 * time.Hour)
		if _, err := issuer.Certificate(); err == nil || !strings.Contains(err.Error(), "own SVID: issuing certificate: ") {
			t.Errorf("after the issuing certificate: got %v", err)
		}
	})
}
