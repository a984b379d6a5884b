package fetch

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
)

// certRequest makes the key of an SVID and asks for its certificate.
func certRequest(n florete.Need) (body json.RawMessage, key string, err error) {
	var want struct {
		ID florete.ID `json:"id"`
	}
	if err := florete.Decode(n.Request, &want); err != nil {
		return nil, "", fmt.Errorf("request: %w", err)
	}
	uri, err := url.Parse(want.ID.String())
	if err != nil {
		return nil, "", err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{uri}}, private)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, "", err
	}
	body, err = json.Marshal(api.CertBody{ID: want.ID, CSR: block("CERTIFICATE REQUEST", csr)})
	return body, block("PRIVATE KEY", der), err
}

// complete checks an answer and adds the values that the host makes itself: the
// key, and as bundle the roots of the manifest, which alone says whom to trust.
func (h *Host) complete(a Ask, p pending, answer *api.Answer) *api.Error {
	if now := time.Now(); answer.Expires != 0 && answer.Expires <= now.Unix() {
		return api.Errorf(api.Transient, api.CodeClock, "answer: expired at %s, here it is %s: set the clock",
			time.Unix(answer.Expires, 0).UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if a.Need.Kind != "cert" {
		return nil
	}
	var want api.CertBody
	if err := florete.Decode(p.Body, &want); err != nil {
		return api.Errorf(api.Invalid, api.CodeMalformed, "request: %v", err)
	}
	cert, err := tls.X509KeyPair([]byte(answer.Values["svid"]), []byte(p.PrivateKey))
	if err != nil {
		return api.Errorf(api.Invalid, api.CodeMalformed, "answer: svid: %v", err)
	}
	id, err := h.verify(&cert)
	if err != nil {
		return api.AsError(fmt.Errorf("answer: svid: %w", err))
	}
	if id != want.ID {
		return api.Errorf(api.Invalid, api.CodeMalformed, "answer: svid is of %s, want %s", id, want.ID)
	}
	answer.Expires = cert.Leaf.NotAfter.Unix()
	answer.Values["key"] = p.PrivateKey
	answer.Values["bundle"] = bundle(h.Manifest.Trust.Roots)
	return nil
}

// verify checks an SVID of this host, as its peers will, whichever side they are on.
func (h *Host) verify(c *tls.Certificate) (florete.ID, error) {
	return api.Peer(chain(c), h.Roots, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

// bundle joins PEM texts, each on lines of its own.
func bundle(roots []string) string {
	var b strings.Builder
	for _, r := range roots {
		b.WriteString(strings.TrimSpace(r))
		b.WriteString("\n")
	}
	return b.String()
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// chain is what c presents, parsed. X509KeyPair has parsed the leaf; the others
// that do not parse would not verify.
func chain(c *tls.Certificate) []*x509.Certificate {
	var all []*x509.Certificate
	for _, der := range c.Certificate {
		if parsed, err := x509.ParseCertificate(der); err == nil {
			all = append(all, parsed)
		}
	}
	return all
}
