package tls

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/server"
)

// Request describes a certificate for public DNS names that the policy lets a host request.
type Request struct{ document.PublicNames }

func (r Request) account() bool { return len(r.Names) == 0 }

// Policy contains the settings of the ACME CA, and the certificates that hosts may request. Compile
// decodes it from the policy of the provider host.
type Policy struct {
	settings
	trustDomain string
	requests    server.Requests[Request]
}

// settings contains the settings of the kind in the topology.
type settings struct {
	Directory string   `json:"directory"` // of the ACME server
	Contact   string   `json:"contact"`   // mail address, or none
	DNS       string   `json:"dns"`       // lego's provider for DNS-01; empty for HTTP-01
	Internal  []string `json:"internal"`  // domains outside DNS
}

// Compile decodes the policy of a provider host. It returns an error if the ACME directory is not
// an https URL, if the DNS provider is unknown, or if the policy permits a certificate for an
// invalid name.
func (k *Certificates) Compile(p document.Policy) (*Policy, error) {
	policy := &Policy{trustDomain: p.TrustDomain}
	if err := server.Settings(p, Name, &policy.settings); err != nil {
		return nil, err
	}
	if u, err := url.Parse(policy.Directory); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("policy of %s: kind %q: directory %q: want an https URL", p.Host, Name, policy.Directory)
	}
	if _, known := dnsProviders[policy.DNS]; policy.DNS != "" && !known {
		return nil, fmt.Errorf("policy of %s: kind %q: dns %q: want one of %s", p.Host, Name, policy.DNS, strings.Join(dnsNames(), ", "))
	}
	var err error
	policy.requests, err = server.DecodeGrants(p, Name, func(g document.Grant) (r Request, err error) {
		if err = strictjson.Decode(g.Request, &r); err == nil {
			err = policy.validate(r)
		}
		return r, err
	})
	return policy, err
}

func (s settings) validate(r Request) error {
	if !slices.IsSorted(r.Names) {
		return fmt.Errorf("names %q: not sorted", r.Names)
	}
	for _, n := range r.Names {
		bare, wild := strings.CutPrefix(n, "*.")
		switch {
		case bare == "" || strings.ContainsAny(bare, "*/ ,\x00") || !strings.Contains(bare, "."):
			return fmt.Errorf("name %q: want a DNS name of two labels or more", n)
		case s.outside(bare) != r.Internal:
			return fmt.Errorf("name %q: internal is %t, and the policy has %q outside of DNS", n, r.Internal, s.Internal)
		case wild && !r.Internal && s.DNS == "":
			return fmt.Errorf("name %q: no CA gives a wildcard without DNS-01", n)
		}
	}
	return nil
}

// outside reports whether a name is in a domain outside DNS. No public CA issues certificates for
// such a name.
func (s settings) outside(name string) bool {
	return slices.ContainsFunc(s.Internal, func(d string) bool { return name == d || strings.HasSuffix(name, "."+d) })
}

// wanted describes the certificate that a call requests.
type wanted struct {
	Request
	policy     *Policy
	holder     string // the host whose key it is for; empty where they share it
	generation int
	csr        *x509.CertificateRequest // of the holder; nil where they share it
}

// names returns the names of the certificate as one text, separated by commas.
func (w wanted) names() string { return strings.Join(w.Names, ",") }

func (w wanted) key() string { return prefix + w.names() + "/" + w.holder }

// parseCSR parses the certificate request of a host. The request must be for exactly the granted
// names.
func parseCSR(body json.RawMessage, names []string) (*x509.CertificateRequest, error) {
	var fields struct {
		CSR string `json:"csr"`
	}
	refuse := func(err error) error {
		return hostapi.Errorf(hostapi.CodeMalformed, "csr: %v: want one signed by a key of P-256, P-384, or RSA of 2048 bits or more, for %s", err, strings.Join(names, ", "))
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, refuse(err)
	}
	block, rest := pem.Decode([]byte(fields.CSR))
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, refuse(errors.New("not one PEM block"))
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return nil, refuse(err)
	}
	switch key := csr.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
			return nil, refuse(fmt.Errorf("key of curve %s", key.Curve.Params().Name))
		}
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < 2048 || bits > 4096 {
			return nil, refuse(fmt.Errorf("RSA key of %d bits", bits))
		}
	default:
		return nil, refuse(fmt.Errorf("key of type %T", key))
	}
	has := slices.Sorted(slices.Values(csr.DNSNames))
	if !slices.Equal(has, names) || len(csr.IPAddresses)+len(csr.EmailAddresses)+len(csr.URIs) > 0 || csr.Subject.String() != "" {
		return nil, refuse(fmt.Errorf("it is for %q", has))
	}
	return csr, nil
}

// fingerprint returns the fingerprint of the public key in a certificate request or certificate.
func fingerprint(spki []byte) string {
	sum := sha256.Sum256(spki)
	return hex.EncodeToString(sum[:])
}
