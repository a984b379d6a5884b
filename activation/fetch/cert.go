package fetch

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/trust"
)

// certRequest generates the private key of an SVID, and the body of the request for the
// certificate.
func (h *Host) certRequest(n document.Need) (body json.RawMessage, key string, err error) {
	id, err := h.certID(n)
	if err != nil {
		return nil, "", err
	}
	uri, err := url.Parse(id.String())
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
	body, err = json.Marshal(hostapi.CertBody{ID: id, CSR: block("CERTIFICATE REQUEST", csr)})
	return body, block("PRIVATE KEY", der), err
}

// complete checks an answer and adds the values that do not come from the provider: the private
// key, and as the bundle the roots of the manifest, because the manifest alone decides which roots
// are trusted.
func (h *Host) complete(a Attempt, p pending, answer *hostapi.Answer) *hostapi.Error {
	now := time.Now()
	if answer.Expires != 0 && answer.Expires <= now.Unix() {
		return hostapi.Errorf(hostapi.CodeClock, "answer: expired at %s, here it is %s: set the clock",
			time.Unix(answer.Expires, 0).UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	switch a.Need.Kind {
	case document.KindCert:
		return h.completeSVID(a.Need, p, answer)
	case document.KindFederation:
		return h.checkBundle(a.Need, answer.Values["bundle"])
	case document.KindSSH:
		return completeSSH(a.Need, p, answer, now)
	case document.KindTLS:
		return completeTLS(a.Need, p, answer)
	}
	return nil
}

// completeSVID checks an answer of kind cert, and adds the private key and the bundle.
func (h *Host) completeSVID(n document.Need, p pending, answer *hostapi.Answer) *hostapi.Error {
	id, err := h.certID(n)
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "%v", err)
	}
	svid, err := h.SVIDs.Parse(h.Layout.Need(n.ID), answer.Values["svid"], p.PrivateKey, id)
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "answer: svid: %v", err)
	}
	if err := h.verify(svid); err != nil {
		return hostapi.AsError(fmt.Errorf("answer: svid: %w", err))
	}
	answer.Expires = svid.Cert.Leaf.NotAfter.Unix()
	answer.Values["key"] = p.PrivateKey
	answer.Values["bundle"] = Bundle(h.Manifest.Trust.Roots)
	return nil
}

// verify verifies an SVID that this host received, as a peer would do for a server and for a
// client. It does not check the revocation list of this host, which may be outdated: a host that
// was reinstated needs the SVID to fetch the list that reinstates it. The provider checks
// revocation instead.
func (h *Host) verify(s *trust.SVID) error {
	_, err := hostapi.Peer(s.Chain, h.Roots.With(nil), x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	return err
}

// Bundle joins root certificates in PEM into the content of the bundle file that is delivered with
// an SVID.
func Bundle(roots []string) string {
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
