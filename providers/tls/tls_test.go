package tls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/acmetest"
	"github.com/florete/florete/tests/kit/providertest"
)

// answering is the kind without its socket.
type answering struct {
	server.Kind[*Policy]
	close func()
}

// ingress answers challenges of an account as one does, at the CA's port.
type ingress struct {
	mu          sync.Mutex
	thumbprints map[string]string // by name
	seen        int
}

func (i *ingress) set(name, thumbprint string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.thumbprints == nil {
		i.thumbprints = map[string]string{}
	}
	i.thumbprints[name] = thumbprint
}

func (i *ingress) start(t *testing.T, ca *acmetest.CA) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ca.HTTPPort))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if r.UserAgent() != "florete" {
			i.seen++ // by the CA
		}
		token, ok := strings.CutPrefix(r.URL.Path, "/.well-known/acme-challenge/")
		name, _, _ := strings.Cut(r.Host, ":")
		if !ok || i.thumbprints[name] == "" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "%s.%s", token, i.thumbprints[name])
	}))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
}

func body(t *testing.T, r Request, key *ecdsa.PrivateKey) json.RawMessage {
	t.Helper()
	if r.Shared || r.account() {
		return kit.JSON(r)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: r.Names}, key)
	if err != nil {
		t.Fatal(err)
	}
	return kit.JSON(map[string]any{
		"names": r.Names, "internal": r.Internal, "shared": r.Shared,
		"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})),
	})
}

func newKeyOf(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestConformance orders from a real CA: with a key of the host, with one that hosts share, and
// of the own CA.
func TestConformance(t *testing.T) {
	t.Parallel()
	ca := acmetest.Start(t, acmetest.Options{Rejected: "5"})
	var at ingress
	at.start(t, ca)
	for name, r := range map[string]Request{
		"own key":    {document.PublicNames{Names: []string{"wiki.example.org"}}},
		"shared key": {document.PublicNames{Names: []string{"auth.example.org"}, Shared: true}},
		"internal":   {document.PublicNames{Names: []string{"wiki.internal"}, Internal: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite := providertest.Suite{
				Kind: Name, Need: "tls-wiki", Settings: settings{Directory: ca.Directory, Internal: []string{"internal"}}, Request: r, Public: !r.Shared,
				Body: func(t *testing.T) json.RawMessage { return body(t, r, newKeyOf(t)) },
				Make: func(e *providertest.Env) server.AnyKind {
					k := New(Config{Store: e.Store, Key: e.Key, Roots: ca.RootsFile, Dial: ca.Dial, Logger: slog.New(slog.DiscardHandler)})
					t.Cleanup(k.Close)
					at.set(r.Names[0], k.thumbprint(&Policy{settings: settings{Directory: ca.Directory}}))
					return server.Any(answering{k, k.Close})
				},
			}
			if r.Shared {
				suite.Secret = []string{"key"}
			}
			providertest.Run(t, suite)
		})
	}
}

// fixture is the kind without its server, at a CA.
type fixture struct {
	t      *testing.T
	ca     *acmetest.CA
	at     ingress
	policy document.Policy
	db     store.Store
	now    time.Time
	*Certificates
}

func newFixture(t *testing.T, ca *acmetest.CA, s settings, requests ...Request) *fixture {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	key, err := sealedstore.New(sealedstore.Secret())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ca: ca, db: db, now: time.Now()}
	c := Config{Store: db, Key: key, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	s.Directory = "https://ca.example/dir"
	s.Internal = append([]string{}, s.Internal...)
	if ca != nil {
		s.Directory, c.Roots, c.Dial, c.Resolvers = ca.Directory, ca.RootsFile, ca.Dial, []string{ca.DNS}
	}
	f.Certificates = New(c)
	t.Cleanup(f.Close)
	f.policy = document.Policy{Host: "forge", TrustDomain: kit.Domain, Kinds: map[string]json.RawMessage{Name: kit.JSON(s)}}
	for i, r := range requests {
		f.policy.Grants = append(f.policy.Grants, document.Grant{Caller: kit.ID(fmt.Sprintf("node/gate%d", i)), Need: "tls-wiki", Kind: Name, Generation: 1, Request: kit.JSON(r)})
	}
	if ca != nil && s.DNS == "" {
		f.at.set("wiki.example.org", f.thumbprint(&Policy{settings: s}))
		f.at.start(t, ca)
	}
	return f
}

// answer returns the answer to the i-th grant, after the commit.
func (f *fixture) answer(i int, b json.RawMessage) (hostapi.Answer, error) {
	compiled, err := f.Compile(f.policy)
	if err != nil {
		return hostapi.Answer{}, err
	}
	g := f.policy.Grants[i]
	d, err := f.Answer(f.t.Context(), compiled, server.Call{Caller: g.Caller, Grant: g, Now: f.now, Request: hostapi.Request{Need: g.Need, Generation: g.Generation, Body: b}})
	if err == nil && len(d.Then) > 0 {
		_, err = f.db.Commit(f.t.Context(), store.Txn{If: d.If, Then: d.Then})
	}
	return d.Answer, err
}

func (f *fixture) must(i int, b json.RawMessage) (hostapi.Answer, *x509.Certificate) {
	f.t.Helper()
	a, err := f.answer(i, b)
	if err != nil {
		f.t.Fatal(err)
	}
	leaf, err := leafOf(a.Values["certificate"])
	if err != nil {
		f.t.Fatal(err)
	}
	return a, leaf
}

// TestRenewal checks that a key keeps its certificate until it is due: after two thirds of the
// lifetime, or earlier if the CA says so.
func TestRenewal(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	t.Parallel()
	ca := acmetest.Start(t, acmetest.Options{Validity: 9 * 24 * time.Hour})
	r := Request{document.PublicNames{Names: []string{"wiki.example.org"}}}
	f := newFixture(t, ca, settings{}, r)
	key := newKeyOf(t)
	first, leaf := f.must(0, body(t, r, key))
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: ca.Issuers(), DNSName: "wiki.example.org", Intermediates: intermediates(first)}); err != nil {
		t.Error(err)
	}
	again := func(after time.Duration) bool {
		t.Helper()
		f.now = time.Now().Add(after)
		_, now := f.must(0, body(t, r, key))
		return now.SerialNumber.Cmp(leaf.SerialNumber) == 0
	}
	if !again(0) || !again(5*24*time.Hour) {
		t.Error("another certificate before two thirds of its life")
	}
	if again(6*24*time.Hour + time.Hour) {
		t.Error("the same certificate after two thirds of its life")
	}
	second, leaf := f.must(0, body(t, r, key))
	f.now = time.Now().Add(7 * time.Hour) // of the second life
	ca.RenewBetween(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})), time.Now().Add(-time.Hour), time.Now().Add(-time.Minute))
	if third, _ := f.must(0, body(t, r, key)); third.Values["certificate"] == second.Values["certificate"] {
		t.Error("the CA wants it renewed, and it is the same")
	}
	if fourth, _ := f.must(0, body(t, r, newKeyOf(t))); fourth.Values["certificate"] == second.Values["certificate"] {
		t.Error("another key has the certificate of the former one")
	}
}

// TestAnotherCA checks that a CA that does not know the former certificate issues the next one all
// the same.
func TestAnotherCA(t *testing.T) {
	t.Parallel()
	names := []string{"wiki.example.org"}
	f := newFixture(t, acmetest.Start(t, acmetest.Options{}), settings{}, Request{document.PublicNames{Names: names}})
	compiled, err := f.Compile(f.policy)
	if err != nil {
		t.Fatal(err)
	}
	key := newKeyOf(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(7), DNSNames: names, SubjectKeyId: []byte("another CA"), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	former, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	former.AuthorityKeyId = template.SubjectKeyId // as of one that is not self-signed
	der, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: names}, key)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.obtain(t.Context(), compiled, names, csr, former); err != nil {
		t.Error(err)
	}
}

func intermediates(a hostapi.Answer) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(a.Values["certificate"]))
	return pool
}

// TestOneOrder checks that several ingresses that request a name at the same time share the result
// of one order.
func TestOneOrder(t *testing.T) {
	t.Parallel()
	ca := acmetest.Start(t, acmetest.Options{})
	r := Request{document.PublicNames{Names: []string{"wiki.example.org"}, Shared: true}}
	f := newFixture(t, ca, settings{}, r, r, r, r)
	var all sync.WaitGroup
	answers := make([]hostapi.Answer, 4)
	for i := range answers {
		all.Go(func() { answers[i], _ = f.must(i, kit.JSON(r)) })
	}
	all.Wait()
	for _, a := range answers {
		if a.Values["key"] == "" || a.Values["key"] != answers[0].Values["key"] || a.Values["certificate"] != answers[0].Values["certificate"] {
			t.Error("two ingresses have different keys or certificates")
		}
	}
	f.at.mu.Lock()
	defer f.at.mu.Unlock()
	if f.at.seen == 0 || f.at.seen > 3 { // from three places
		t.Errorf("the CA read the challenge %d times: none, or more than one order", f.at.seen)
	}
}

// TestBackoff checks that no order is sent while the ingress does not answer, and that failed
// orders wait before the next try.
func TestBackoff(t *testing.T) {
	t.Parallel()
	ca := acmetest.Start(t, acmetest.Options{})
	r := Request{document.PublicNames{Names: []string{"wiki.example.org"}}}
	f := newFixture(t, ca, settings{}, r)
	right := f.at.thumbprints["wiki.example.org"]
	f.at.set("wiki.example.org", "")
	key := newKeyOf(t)
	_, err := f.answer(0, body(t, r, key))
	var e *hostapi.Error
	if !errors.As(err, &e) || e.Kind != hostapi.Transient || !strings.Contains(e.Message, "answers no challenges of this cluster") || e.RetryAfter < 1 {
		t.Fatalf("got %v", err)
	}
	f.at.mu.Lock()
	seen := f.at.seen
	f.at.mu.Unlock()
	if seen != 0 {
		t.Errorf("the CA read the challenge %d times, before an ingress answered it", seen)
	}
	f.at.set("wiki.example.org", right)
	if _, err = f.answer(0, body(t, r, key)); !errors.As(err, &e) || e.RetryAfter < 1 {
		t.Errorf("ordered again at once: %v", err)
	}

	now := time.Now()
	for failures, want := range map[int]time.Duration{0: 10 * time.Second, 3: 80 * time.Second, 40: time.Hour} {
		if got := (attempt{Failures: failures}).failed(errors.New("x"), now); got.Rest != now.Add(want).Unix() || got.Failures != failures+1 {
			t.Errorf("after %d failures: %+v, want a rest of %s", failures, got, want)
		}
	}
}

// TestDNS checks that a wildcard certificate is issued by DNS-01, through a provider of lego that
// changes the zone.
func TestDNS(t *testing.T) {
	t.Parallel()
	ca := acmetest.Start(t, acmetest.Options{})
	zone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct{ FQDN, Value string }
		user, password, _ := r.BasicAuth()
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || user != "florete" || password != "s3cret" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		if r.URL.Path == "/cleanup" {
			m.Value = ""
		}
		ca.TXT(m.FQDN, m.Value)
	}))
	defer zone.Close()
	r := Request{document.PublicNames{Names: []string{"*.example.org"}, Shared: true}}
	f := newFixture(t, ca, settings{DNS: "httpreq"}, r)
	f.Environment = filepath.Join(t.TempDir(), "tls.env")
	text := "# of the zone\nHTTPREQ_ENDPOINT=" + zone.URL + "\nHTTPREQ_USERNAME=florete\nHTTPREQ_PASSWORD=s3cret\nHTTPREQ_POLLING_INTERVAL=1\n"
	if err := os.WriteFile(f.Environment, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, leaf := f.must(0, kit.JSON(r))
	if !slices.Equal(leaf.DNSNames, []string{"*.example.org"}) {
		t.Errorf("it is for %q", leaf.DNSNames)
	}
	if err := os.WriteFile(f.Environment, []byte("PATH=/tmp\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.dnsProvider("httpreq"); err == nil || !strings.Contains(err.Error(), "want HTTPREQ_NAME=VALUE") {
		t.Errorf("another variable: %v", err)
	}
}

// TestInternal checks that the internal CA is the same whenever it is derived, and valid only for
// its domains.
func TestInternal(t *testing.T) {
	t.Parallel()
	r := Request{document.PublicNames{Names: []string{"wiki.internal"}, Internal: true}}
	f := newFixture(t, nil, settings{Internal: []string{"internal", "home.arpa"}}, r)
	_, leaf := f.must(0, body(t, r, newKeyOf(t)))
	compiled, err := f.Compile(f.policy)
	if err != nil {
		t.Fatal(err)
	}
	p := compiled
	root, err := f.root(p)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := f.root(p); string(again.Raw) != string(root.Raw) {
		t.Error("another root the second time")
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "wiki.internal"}); err != nil {
		t.Error(err)
	}
	evil := wanted{Request: Request{document.PublicNames{Names: []string{"bank.example.org"}}}, policy: p}
	if evil.csr, err = parseCSR(body(t, evil.Request, newKeyOf(t)), evil.Names); err != nil {
		t.Fatal(err)
	}
	forged, err := f.issue(evil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other, _ := leafOf(forged.Chain)
	if _, err := other.Verify(x509.VerifyOptions{Roots: roots, DNSName: "bank.example.org"}); err == nil {
		t.Error("who trusts the root trusts a name outside of its domains")
	}
}

// TestRefused checks that a policy whose names cannot be ordered is refused before it comes into
// force, and that a request for other names or with another host's key is refused at once.
func TestRefused(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]Request{
		"two labels":          {document.PublicNames{Names: []string{"wiki"}}},
		"not sorted":          {document.PublicNames{Names: []string{"b.example.org", "a.example.org"}}},
		"without DNS-01":      {document.PublicNames{Names: []string{"*.example.org"}}},
		"internal is true":    {document.PublicNames{Names: []string{"wiki.example.org"}, Internal: true}},
		"internal is false":   {document.PublicNames{Names: []string{"wiki.internal"}}},
		`name "a,b.example"`:  {document.PublicNames{Names: []string{"a,b.example"}}},
		`name "*.*.ex.org"`:   {document.PublicNames{Names: []string{"*.*.ex.org"}}},
		`name "../x.example"`: {document.PublicNames{Names: []string{"../x.example"}}},
	} {
		f := newFixture(t, nil, settings{Internal: []string{"internal"}}, r)
		if _, err := f.Compile(f.policy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
	names := []string{"wiki.example.org"}
	good := body(t, Request{document.PublicNames{Names: names}}, newKeyOf(t))
	for what, b := range map[string]json.RawMessage{
		"other names": body(t, Request{document.PublicNames{Names: []string{"evil.example.org"}}}, newKeyOf(t)),
		"one more":    body(t, Request{document.PublicNames{Names: []string{"evil.example.org", "wiki.example.org"}}}, newKeyOf(t)),
		"none":        kit.JSON(Request{document.PublicNames{Names: names}}),
		"rubbish":     kit.JSON(map[string]string{"csr": "-----BEGIN"}),
		"two":         kit.JSON(map[string]string{"csr": strings.Repeat(csrOf(t, good), 2)}),
	} {
		if _, err := parseCSR(b, names); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if _, err := parseCSR(good, names); err != nil {
		t.Error(err)
	}
}

func csrOf(t *testing.T, b json.RawMessage) string {
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	return fields["csr"].(string)
}
