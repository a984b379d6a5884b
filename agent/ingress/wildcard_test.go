package ingress

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// certificate creates a self-signed certificate for some names. It returns the paths of the
// certificate and its key, and a pool that trusts the certificate.
func certificate(t *testing.T, names ...string) (crt, key string, roots *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	crt, key = filepath.Join(dir, fileCertificate), filepath.Join(dir, fileKey)
	roots = x509.NewCertPool()
	pemCRT := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	roots.AppendCertsFromPEM(pemCRT)
	for name, b := range map[string][]byte{crt: pemCRT, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return crt, key, roots
}

// TestWildcard checks that an exact name takes precedence over a wildcard that matches it, and that
// a wildcard stands for one label.
func TestWildcard(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T, []int) started{
		"nginx": func(t *testing.T, p []int) started { return newNginx(t, p[0], p[1]) },
		"caddy": func(t *testing.T, p []int) started { return newCaddy(t, p[0], p[1]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ports := kit.Ports(3)
			proxy := start(t, ports)
			proxy.start(t)
			crt, key, roots := certificate(t, "*.apps.example")
			var s Sites
			for _, name := range []string{"git.apps.example", "*.apps.example"} {
				backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, " ", r.Host) }))
				t.Cleanup(backend.Close)
				s.All = append(s.All, Site{Name: name, Upstream: netip.MustParseAddrPort(backend.Listener.Addr().String()), Certificate: crt, Key: key, Digest: "1"})
			}
			kit.Eventually(t, "it accepts a wildcard", func() bool {
				_, err := proxy.Apply(t.Context(), s)
				if err != nil {
					t.Log(err)
				}
				return err == nil
			})
			get := func(scheme, host string) (body, location string) {
				client := http.Client{
					Timeout:       kit.Patience,
					CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
					Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
						return new(net.Dialer).DialContext(ctx, "tcp", local(ports[map[string]int{"http": 0, "https": 1}[scheme]]))
					}},
				}
				resp, err := client.Get(scheme + "://" + host + "/a?b")
				if err != nil {
					return "", ""
				}
				defer resp.Body.Close()
				b := make([]byte, 100)
				n, _ := resp.Body.Read(b)
				return string(b[:n]), resp.Header.Get("Location")
			}
			settles(t, "a name of the wildcard answers", func() bool { body, _ := get("https", "shop.apps.example"); return body != "" })
			for host, want := range map[string]string{
				"shop.apps.example": "*.apps.example shop.apps.example",
				"git.apps.example":  "git.apps.example git.apps.example",
				"a.b.apps.example":  "",
				"apps.example":      "",
			} {
				if body, _ := get("https", host); body != want {
					t.Errorf("%s: %q, want %q", host, body, want)
				}
				_, location := get("http", host)
				if redirected := location == "https://"+host+"/a?b"; redirected != (want != "") {
					t.Errorf("http, %s leads to %q", host, location)
				}
			}
		})
	}
}

// TestSites checks that a service has a site for each of its public names, and that wildcards are
// last.
func TestSites(t *testing.T) {
	var m document.Manifest
	at := netip.MustParseAddrPort("127.1.1.1:80")
	m.Forwarder.Reach = []document.Reachable{
		{ID: kit.ID("service/hidden"), Listen: at},
		{ID: kit.ID("service/apps"), Listen: at, TLSName: "apps.example", TLSAliases: []string{"*.apps.example", "shop.example"}, GRPC: true},
		{ID: kit.ID("service/git"), Listen: at, TLSName: "git.apps.example"},
	}
	s, _, err := sitesOf(hostdir.Layout(t.TempDir()), m)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, site := range s.All {
		names = append(names, site.Name)
		if site.GRPC != (site.Name != "git.apps.example") || site.Upstream != at {
			t.Errorf("%+v", site)
		}
	}
	if want := []string{"apps.example", "git.apps.example", "shop.example", "*.apps.example"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}
