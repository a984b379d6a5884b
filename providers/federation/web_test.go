package federation

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/federation"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/florete/florete/tests/kit"
)

// webCertificate returns a certificate for 127.0.0.1 as public CAs issue them, which is its own root.
func webCertificate() (c *tls.Certificate, root string) {
	key := kit.NewKey()
	cert := kit.SelfSigned(&x509.Certificate{
		Subject: pkix.Name{CommonName: "the Web's"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, key)
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// TestWeb checks that an endpoint with the profile https_web authenticates with a certificate for
// its name, issued below the roots in the policy. The bundle of such an endpoint is accepted even
// if the bundle in force does not verify the endpoint.
func TestWeb(t *testing.T) {
	e := newEndpoint(t)
	good, root := webCertificate()
	e.web = []string{root}
	other, _ := webCertificate()
	e.present(other, e.ca.Bundle(2, time.Second))
	r := run(t, e)
	kit.Eventually(t, "a certificate of another root to be refused", func() bool { return r.row("endpoint-untrusted", "unknown authority") })
	e.present(e.svid(e.ca), e.ca.Bundle(2, time.Second))
	time.Sleep(2 * time.Second) // its SVID is no certificate for 127.0.0.1
	if n := r.bundle().Sequence(); n != 1 {
		t.Errorf("in force is %d, which the endpoint's SVID brought", n)
	}
	next := kit.NewCAOf(blue)
	e.present(good, next.Bundle(3, time.Second))
	kit.Eventually(t, "the bundle of another root", func() bool { return r.bundle().Sequence() == 3 })
}

// TestWebPolicy checks that each profile requires exactly the settings by which it verifies an
// endpoint.
func TestWebPolicy(t *testing.T) {
	_, root := webCertificate()
	for name, c := range map[string]struct {
		by   authentication
		want string
	}{
		"web":            {authentication{Profile: profileWeb}, ""},
		"web with roots": {authentication{Profile: profileWeb, EndpointRoots: []string{root}}, ""},
		"web with an ID": {authentication{Profile: profileWeb, EndpointID: "spiffe://" + blue + "/x"}, "want none with profile https_web"},
		"bad roots":      {authentication{Profile: profileWeb, EndpointRoots: []string{"x"}}, "endpoint roots"},
		"spiffe":         {authentication{EndpointID: "spiffe://" + blue + "/x"}, ""},
		"without an ID":  {authentication{Profile: profileSPIFFE}, "want one of " + blue},
		"another's":      {authentication{EndpointID: "spiffe://green.example/x"}, "want one of " + blue},
		"with roots":     {authentication{EndpointID: "spiffe://" + blue + "/x", EndpointRoots: []string{root}}, "want none with profile https_spiffe"},
		"unknown":        {authentication{Profile: "http"}, `profile "http"`},
	} {
		err := (&trusted{name: blue}).authenticate(c.by)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestServesWeb checks that with a Web PKI certificate the bundle is served to clients of profile
// https_web, and that a renewed certificate is used without a restart.
func TestServesWeb(t *testing.T) {
	dir := t.TempDir()
	write := func(c *tls.Certificate) {
		key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		for name, block := range map[string]*pem.Block{"key": {Type: "PRIVATE KEY", Bytes: key}, "crt": {Type: "CERTIFICATE", Bytes: c.Certificate[0]}} {
			if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, _ := webCertificate()
	write(first)
	at := kit.Address()
	e := newEndpoint(t)
	e.listen = Web{at, filepath.Join(dir, "crt"), filepath.Join(dir, "key")}
	run(t, e)
	td := spiffeid.RequireTrustDomainFromString(kit.Domain)
	fetch := func(by *tls.Certificate) error {
		pool := x509.NewCertPool()
		pool.AddCert(by.Leaf)
		b, err := federation.FetchBundle(t.Context(), td, "https://"+at+"/federation/bundle", federation.WithWebPKIRoots(pool))
		if err == nil && len(b.X509Authorities()) != 1 {
			t.Errorf("%d roots", len(b.X509Authorities()))
		}
		return err
	}
	kit.Eventually(t, "the bundle", func() bool { return fetch(first) == nil })
	next, _ := webCertificate()
	write(next)
	if err := fetch(next); err != nil {
		t.Errorf("with a certificate that was renewed: %v", err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true}}
	answer, err := client.Get("https://" + at + "/federation/request")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusNotFound {
		t.Errorf("what is not public: %s, %v", answer.Status, err)
	}
	if err := (Web{Listen: at}).check(); err == nil || !strings.Contains(err.Error(), "want listen, certificate and key") {
		t.Errorf("without files: %v", err)
	}
}
