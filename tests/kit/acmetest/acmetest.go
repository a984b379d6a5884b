// Package acmetest runs a real ACME server for tests: Let's Encrypt's pebble, with a DNS server of
// its own. Like a public CA, it resolves and validates a name again for each order. To test
// retries, it rejects some valid nonces at random.
package acmetest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/program"
)

// CA is a running ACME server (pebble).
type CA struct {
	Directory string // URL of the ACME directory
	RootsFile string // root certificates of the HTTPS server, in PEM
	DNS       string // host:port of the resolver, which resolves every name to 127.0.0.1
	HTTPPort  int    // port at which HTTP-01 challenges are validated

	t          testing.TB
	management string // URL, of pebble
	dns        string // URL, of the resolver's management
	client     *http.Client
}

// Options configures the ACME server for Start.
type Options struct {
	Validity time.Duration // lifetime of certificates; 90 days unless set
	Rejected string        // percentage of good nonces to reject; 15 unless set
}

// build builds pebble and its DNS server, once for all tests.
var build = sync.OnceValues(func() (map[string]string, error) {
	paths := map[string]string{}
	for _, name := range []string{"pebble", "pebble-challtestsrv"} {
		path, err := program.Tool("tools/pebble", name)
		if err != nil {
			return nil, err
		}
		paths[name] = path
	}
	return paths, nil
})

// Start starts an ACME server that runs until the test ends.
func Start(t testing.TB, o Options) *CA {
	t.Helper()
	programs, err := build()
	if err != nil {
		t.Fatal(err)
	}
	if o.Validity == 0 {
		o.Validity = 90 * 24 * time.Hour
	}
	if o.Rejected == "" {
		o.Rejected = "15"
	}
	dir := t.TempDir()
	ports := kit.Ports(5)
	at := func(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i])) }
	c := &CA{
		t: t, Directory: "https://" + at(0) + "/dir", management: "https://" + at(1), DNS: at(2), dns: "http://" + at(3), HTTPPort: ports[4],
		RootsFile: filepath.Join(dir, "crt.pem"),
	}
	Certificate(t, c.RootsFile, filepath.Join(dir, "key.pem"))
	c.client = Client(c.RootsFile, "127.0.0.1")
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": at(0), "managementListenAddress": at(1), "certificate": c.RootsFile, "privateKey": filepath.Join(dir, "key.pem"),
		"httpPort": c.HTTPPort, "tlsPort": 9, "ocspResponderURL": "", "externalAccountBindingRequired": false, "keyAlgorithm": "ecdsa",
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles":   map[string]any{"default": map[string]any{"description": "test", "validityPeriod": int(o.Validity.Seconds())}},
	}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "pebble.json"), config, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	Run(t, nil, programs["pebble-challtestsrv"], "-management", at(3), "-dnsserver", at(2), "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "")
	Run(t, []string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=" + o.Rejected, "PEBBLE_AUTHZREUSE=0"},
		programs["pebble"], "-strict", "-config", filepath.Join(dir, "pebble.json"), "-dnsserver", c.DNS)
	c.wait(c.Directory)
	c.wait(c.dns)
	return c
}

func (c *CA) wait(url string) {
	c.t.Helper()
	kit.Succeeds(c.t, url, func() error {
		resp, err := c.client.Get(url)
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
}

// Issuers returns a pool with the root of the CA. Use it to verify certificates that the CA has
// issued.
func (c *CA) Issuers() *x509.CertPool {
	c.t.Helper()
	resp, err := c.client.Get(c.management + "/roots/0")
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(b) {
		c.t.Fatal("no root", err)
	}
	return pool
}

// RenewBetween makes the CA suggest that a certificate be renewed between two times (ACME Renewal
// Information, RFC 9773). The first argument is the certificate in PEM.
func (c *CA) RenewBetween(leaf string, start, end time.Time) {
	c.t.Helper()
	ari, err := json.Marshal(map[string]any{"suggestedWindow": map[string]time.Time{"start": start, "end": end}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.post(c.management+"/set-renewal-info/", map[string]string{"certificate": leaf, "ariResponse": string(ari)})
}

// TXT sets a TXT record in the DNS server that the CA queries. If the value is empty, TXT removes
// the record.
func (c *CA) TXT(name, value string) {
	c.t.Helper()
	if value == "" {
		c.post(c.dns+"/clear-txt", map[string]string{"host": name})
		return
	}
	c.post(c.dns+"/set-txt", map[string]string{"host": name, "value": value})
}

func (c *CA) post(url string, v any) []byte {
	c.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := c.client.Post(url, "application/json", bytes.NewReader(b))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s: %s", url, resp.Status, answer)
	}
	return answer
}

// Dial connects to the local port at which the CA validates HTTP-01 challenges, and ignores the
// address in its arguments. Use it in place of net.Dialer.DialContext.
func (c *CA) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(c.HTTPPort)))
}

// Run starts a program, and terminates it at the end of the test. The program gets the variables in
// env in addition to those of the test. If the test fails, the program's output is logged.
func Run(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", args[0], log.String())
		}
	})
	return cmd
}

// Client returns an HTTP client that trusts only the certificates in a file. It expects servers to
// present a certificate for the given server name.
func Client(file, server string) *http.Client {
	roots := x509.NewCertPool()
	b, _ := os.ReadFile(file) // else it trusts none
	roots.AppendCertsFromPEM(b)
	return &http.Client{Timeout: kit.Patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: server}}}
}

// Certificate writes a new self-signed certificate for 127.0.0.1 and wiki.example to the file crt,
// and its private key to the file key.
func Certificate(t testing.TB, crt, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"wiki.example"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{crt: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: b}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
