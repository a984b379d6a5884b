package identityfile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
)

// Request returns a request for an identity file, signed by the key of this host, and the
// fingerprint of that key. It generates the private keys that the host does not have yet and stores
// them, so that a repeated request contains the same keys.
func (h Host) Request() (r hostapi.SignedIdentityRequest, fingerprint string, err error) {
	doc, err := h.State.Manifest()
	if err != nil {
		return r, "", fmt.Errorf("%w: install this host's documents and start its units first", err)
	}
	m := doc.Manifest()
	unlock, err := fetch.LockJoin(h.State)
	if err != nil {
		return r, "", err
	}
	defer unlock()
	if m.Identity.Joins {
		// The key is in a file, because age can encrypt to it, but not to a key of a TPM.
		if err := devicekey.Make(h.State, devicekey.None); err != nil {
			return r, "", fmt.Errorf("device key: %w", err)
		}
	}
	proves, err := h.proves(m)
	if err != nil {
		return r, "", err
	}
	keys, err := fetch.IdentityKeys(h.State)
	if err != nil {
		return r, "", err
	}
	request := hostapi.IdentityRequest{
		Schema: hostapi.IdentityRequestSchema, Format: document.NewestFormat, Cluster: m.Cluster, Node: m.Identity.ID, Device: line(proves.PublicKey()),
	}
	for _, n := range m.Needs {
		id, err := n.CertID()
		if n.Kind != document.KindCert || err != nil {
			continue
		}
		if keys[id.String()] == "" {
			if keys[id.String()], err = newKey(); err != nil {
				return r, "", err
			}
		}
		csr, err := csrOf(id, keys[id.String()])
		if err != nil {
			return r, "", err
		}
		request.SVIDs = append(request.SVIDs, hostapi.CertBody{ID: id, CSR: csr})
	}
	slices.SortFunc(request.SVIDs, func(a, b hostapi.CertBody) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	b, err := json.Marshal(keys)
	if err == nil {
		err = atomicfile.File(h.State.IdentityKeys(), b, 0o600)
	}
	if err != nil {
		return r, "", err
	}
	if b, err = json.Marshal(request); err != nil {
		return r, "", err
	}
	r, err = hostapi.SignIdentityRequest(b, proves)
	return r, ssh.FingerprintSHA256(proves.PublicKey()), err
}

func newKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return block("PRIVATE KEY", der), err
}

func csrOf(id spiffe.ID, key string) (string, error) {
	uri, err := url.Parse(id.String())
	if err != nil {
		return "", err
	}
	b, _ := pem.Decode([]byte(key))
	if b == nil {
		return "", fmt.Errorf("key of the request for %s: not PEM: remove the file with the keys of requests", id.Short())
	}
	private, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	if err != nil {
		return "", fmt.Errorf("key of the request for %s: %w: remove the file with the keys of requests", id.Short(), err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{uri}}, private)
	return block("CERTIFICATE REQUEST", csr), err
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
