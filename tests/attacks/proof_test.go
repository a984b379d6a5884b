package attacks

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// rawConn is a connection to the process of provider p for kind cert, without a client certificate.
type rawConn struct {
	t    *testing.T
	c    *cluster
	conn *tls.Conn
	r    *bufio.Reader
}

func (c *cluster) wire(t *testing.T) *rawConn {
	t.Helper()
	conn, err := tls.Dial("tcp", c.b.Manifest.Providers["p"]["cert"].Addresses[0], &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &rawConn{t, c, conn, bufio.NewReader(conn)}
}

// post sends a request on the connection. It returns the refusal, or nil if the request was
// granted.
func (w *rawConn) post(path, key string, body, answer any) error {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "https://p"+path, bytes.NewReader(kit.JSON(body)))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set(hostapi.HeaderKey, key)
	if err := req.Write(w.conn); err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.ReadResponse(w.r, req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		return strictjson.Decode(b, answer)
	}
	var e hostapi.Error
	if err := strictjson.Decode(b, &e); err != nil {
		w.t.Fatalf("%v: %q", err, b)
	}
	return &e
}

func (w *rawConn) nonce() string {
	w.t.Helper()
	var n hostapi.Nonce
	if err := w.post(hostapi.PathNonce, "", struct{}{}, &n); err != nil {
		w.t.Fatal(err)
	}
	return n.Nonce
}

// prove returns a request with which host b enrols over this connection. It contains the nonce that
// provider p has sent.
func (w *rawConn) prove(nonce string) hostapi.Request {
	w.t.Helper()
	key, err := ssh.ParsePrivateKey(kit.ReadFile(w.c.b.HostKey()))
	if err != nil {
		w.t.Fatal(err)
	}
	cs := w.conn.ConnectionState()
	binding, err := hostapi.ChannelBinding(&cs)
	if err != nil {
		w.t.Fatal(err)
	}
	id := w.c.b.Manifest.Identity.ID
	csr := kit.CSR(id, kit.NewKey())
	block, _ := pem.Decode([]byte(csr))
	r := hostapi.Request{Need: "cert-node", Generation: 1, Body: kit.JSON(hostapi.CertBody{ID: id, CSR: csr})}
	st := hostapi.Statement{Node: id, Provider: w.c.b.Manifest.Providers["p"]["cert"].ID, Nonce: nonce, CSR: block.Bytes, Binding: binding}
	if r.Proof, err = st.Sign(key); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *rawConn) enrol(r hostapi.Request) error {
	w.t.Helper()
	key, err := r.Key(r.Proof.Node)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.post(hostapi.Path("cert"), key, r, &hostapi.Answer{})
}

// TestProofs attacks provider p with everything that an attacker could record when b enrolled. It
// also sends certificate requests that ask for more than p may grant.
func TestProofs(t *testing.T) {
	const b = "spiffe://demo.flor/node/b"
	denied := func(code string) local.Decision {
		return local.Decision{Caller: b, Need: "cert-node", Decision: "denied", Code: code}
	}
	invalid := local.Decision{Caller: b, Need: "cert-node", Decision: "invalid", Code: hostapi.CodeMalformed.Name, Message: "certificate request"}
	// enrolled enrols a host. It returns the connection and the request that was sent on it.
	enrolled := func(t *testing.T, c *cluster) (*rawConn, hostapi.Request) {
		w := c.wire(t)
		r := w.prove(w.nonce())
		if err := w.enrol(r); err != nil {
			t.Fatal(err)
		}
		return w, r
	}
	csr := func(change func(*x509.CertificateRequest)) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error {
			id := c.b.Manifest.Identity.ID
			text := request(t, id, kit.NewKey(), change)
			return c.need(t, c.b, "cert-node", func(_ *hostapi.Client, r *hostapi.Request) { r.Body = kit.JSON(hostapi.CertBody{ID: id, CSR: text}) })
		}
	}
	run(t, []attack{
		{
			name: "an enrolment replayed on its connection",
			try: func(t *testing.T, c *cluster) error {
				w, r := enrolled(t, c)
				return w.enrol(r)
			},
			refusal: "nonce was used", row: denied(hostapi.CodeReplayed.Name),
		},
		{
			name: "an enrolment replayed on another connection",
			try: func(t *testing.T, c *cluster) error {
				_, r := enrolled(t, c)
				return c.wire(t).enrol(r)
			},
			refusal: "for this connection", row: denied(hostapi.CodeUntrusted.Name),
		},
		{
			name: "an enrolment relayed before it was used",
			try: func(t *testing.T, c *cluster) error {
				w := c.wire(t)
				return c.wire(t).enrol(w.prove(w.nonce()))
			},
			refusal: "for this connection", row: denied(hostapi.CodeUntrusted.Name),
		},
		{
			name: "a used nonce in a new proof after a restart of the provider",
			try: func(t *testing.T, c *cluster) error {
				_, r := enrolled(t, c)
				if err := c.p.Stop(local.ProviderPart("cert"), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				if err := c.p.Provide("cert"); err != nil {
					t.Fatal(err)
				}
				kit.Eventually(t, "the provider answers", func() bool {
					conn, err := net.Dial("tcp", c.b.Manifest.Providers["p"]["cert"].Addresses[0])
					if err == nil {
						conn.Close()
					}
					return err == nil
				})
				w := c.wire(t)
				return w.enrol(w.prove(r.Proof.Nonce))
			},
			refusal: "nonce was used", row: denied(hostapi.CodeReplayed.Name),
		},
		{
			name: "a nonce that p did not make",
			try: func(t *testing.T, c *cluster) error {
				w := c.wire(t)
				return w.enrol(w.prove("AAAA"))
			},
			refusal: "bad-nonce", row: local.Decision{Caller: b, Need: "cert-node", Decision: "transient", Code: hostapi.CodeBadNonce.Name},
		},
		{
			name:    "a CSR that names a host",
			try:     csr(func(r *x509.CertificateRequest) { r.DNSNames = []string{"bank.example"} }),
			refusal: "names hosts or addresses", row: invalid,
		},
		{
			name:    "a CSR that names an address",
			try:     csr(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 1)} }),
			refusal: "names hosts or addresses", row: invalid,
		},
		{
			name: "a CSR with another ID beside its own",
			try: csr(func(r *x509.CertificateRequest) {
				r.URIs = append(r.URIs, &url.URL{Scheme: "spiffe", Host: kit.Domain, Path: "/node/p"})
			}),
			refusal: "certificate request: for [", row: invalid,
		},
		{
			name: "a CSR for another ID",
			try: csr(func(r *x509.CertificateRequest) {
				r.URIs = []*url.URL{{Scheme: "spiffe", Host: kit.Domain, Path: "/node/p"}}
			}),
			refusal: "want spiffe://demo.flor/node/b", row: invalid,
		},
		{
			name: "a CSR with a key of RSA-1024",
			try: func(t *testing.T, c *cluster) error {
				key, err := rsa.GenerateKey(rand.Reader, 1024)
				if err != nil {
					t.Fatal(err)
				}
				id := c.b.Manifest.Identity.ID
				text := request(t, id, key, func(*x509.CertificateRequest) {})
				return c.need(t, c.b, "cert-node", func(_ *hostapi.Client, r *hostapi.Request) { r.Body = kit.JSON(hostapi.CertBody{ID: id, CSR: text}) })
			},
			refusal: "RSA of 1024 bits", row: invalid,
		},
		{
			name: "a CSR for the key of somebody else",
			try: func(t *testing.T, c *cluster) error {
				id := c.b.Manifest.Identity.ID
				block, _ := pem.Decode([]byte(kit.CSR(id, kit.NewKey())))
				block.Bytes[len(block.Bytes)-1] ^= 1
				text := string(pem.EncodeToMemory(block))
				return c.need(t, c.b, "cert-node", func(_ *hostapi.Client, r *hostapi.Request) { r.Body = kit.JSON(hostapi.CertBody{ID: id, CSR: text}) })
			},
			refusal: "signed by the key that it is for", row: invalid,
		},
	})

	// A CSR can request more than names. Everything else must not be in the certificate.
	c := start(t)
	ask := asn1.ObjectIdentifier{2, 5, 29, 19}
	id := c.b.Manifest.Identity.ID
	text := request(t, id, kit.NewKey(), func(r *x509.CertificateRequest) {
		r.Subject = pkix.Name{CommonName: "root", OrganizationalUnit: []string{"node/p", "device/SHA256:x"}}
		r.ExtraExtensions = append(r.ExtraExtensions, pkix.Extension{Id: ask, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}})
	})
	answer, err := c.client(t, c.b, "cert").Do(t.Context(), hostapi.Path("cert"), hostapi.Request{Need: "cert-node", Generation: 1, Body: kit.JSON(hostapi.CertBody{ID: id, CSR: text})})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(answer.Values["svid"]))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil || leaf.IsCA || leaf.Subject.CommonName != "" || trust.GivenTo(leaf) != "b" || trust.GivenToDevice(leaf) != "" || leaf.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("a CSR that requests to be a CA, of another node, got %+v, %v", leaf, err)
	}
}

// request returns a CSR of an identity for a key. The function change alters the CSR before it is
// signed.
func request(t *testing.T, id spiffe.ID, key any, change func(*x509.CertificateRequest)) string {
	t.Helper()
	u, err := url.Parse(id.String())
	if err != nil {
		t.Fatal(err)
	}
	r := &x509.CertificateRequest{URIs: []*url.URL{u}}
	change(r)
	der, err := x509.CreateCertificateRequest(rand.Reader, r, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// TestRaced checks that a request that is sent 1,000 times at the same time produces a single
// certificate.
func TestRaced(t *testing.T) {
	c := start(t)
	id := c.c.Manifest.Identity.ID
	began := time.Now()
	r := hostapi.Request{Need: "cert-node", Generation: 1, Body: kit.JSON(hostapi.CertBody{ID: id, CSR: kit.CSR(id, kit.NewKey())})}
	const times, at = 1000, 20
	var mu sync.Mutex
	var left atomic.Int64
	left.Store(times)
	serials := map[string]int{}
	var group sync.WaitGroup
	for range at {
		client := c.client(t, c.c, "cert")
		group.Go(func() {
			pass := client.Calls()
			defer pass.Close()
			for left.Add(-1) >= 0 {
				answer, err := pass.Do(t.Context(), hostapi.Path("cert"), r)
				mu.Lock()
				switch e := hostapi.AsError(err); {
				case err == nil:
					serials[answer.Values["svid"]]++
				case e.Kind == hostapi.Transient && e.Code == hostapi.CodeBusy.Name:
					serials[e.Code]++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	busy := serials[hostapi.CodeBusy.Name]
	delete(serials, hostapi.CodeBusy.Name)
	if len(serials) != 1 {
		t.Errorf("%d certificates were issued", len(serials))
	}
	issued, replayed := 0, 0
	for _, d := range c.audit(t, began) {
		switch {
		case d.Caller != id.String() || d.Need != "cert-node" || d.Decision != "granted":
		case d.Replayed:
			replayed++
		default:
			issued++
		}
	}
	if issued != 1 || issued+replayed+busy != times {
		t.Errorf("%d were issued, %d replayed, %d busy, want 1 of %d", issued, replayed, busy, times)
	}
}
