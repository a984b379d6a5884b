package trust

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
)

// Limits for the certificate chain of a peer. The chains that providers issue have two certificates
// and less than 2 KB.
const (
	maxChain      = 4
	maxChainBytes = 16 << 10
)

// ValidityError means that the only fault of a certificate chain is that it has expired or is not
// valid yet.
type ValidityError struct {
	ID            spiffe.ID
	At            time.Time
	Begin, Expiry time.Time // period in which the whole chain is valid
}

func (e *ValidityError) Error() string {
	return fmt.Sprintf("certificate of %s is valid from %s to %s, here it is %s: renew it or set the clock", e.ID,
		e.Begin.UTC().Format(time.RFC3339), e.Expiry.UTC().Format(time.RFC3339), e.At.UTC().Format(time.RFC3339))
}

// CheckChain returns an error if verifying a certificate chain would be expensive, because of the
// number or size of the certificates, or because of their keys. A TLS endpoint calls it before it
// verifies any signature of the peer.
func CheckChain(chain []*x509.Certificate) error {
	if len(chain) > maxChain {
		return fmt.Errorf("chain of %d certificates, want at most %d", len(chain), maxChain)
	}
	size := 0
	for i, c := range chain {
		size += len(c.Raw)
		if err := pubkey.Check(c.PublicKey); err != nil {
			return fmt.Errorf("certificate %d of the chain: %w", i, err)
		}
	}
	if size > maxChainBytes {
		return fmt.Errorf("chain of %d bytes, want at most %d", size, maxChainBytes)
	}
	return nil
}

// Verify verifies a certificate chain, leaf first, and returns the SPIFFE ID of the leaf. The chain
// must be valid at the time at and allow all the given usages. It must lead to a root of the ID's
// trust domain, which is that of r or a federated one.
//
// The error is a *ValidityError if the chain would be accepted at another time, and a *RevokedError
// if only the revocation list forbids it. After an error, the returned ID is the one that the leaf
// claims.
func (r *Roots) Verify(chain []*x509.Certificate, at time.Time, usages ...x509.ExtKeyUsage) (spiffe.ID, error) {
	if len(chain) == 0 {
		return spiffe.ID{}, errors.New("no certificate")
	}
	id, err := LeafID(chain[0])
	if err == nil {
		err = CheckChain(chain)
	}
	by := r.of(id)
	if err == nil {
		err = by.checkPurpose(chain, id, usages)
	}
	if err != nil {
		return id, err
	}
	begin, expiry := Window(chain)
	if err = by.verify(chain, at); err != nil && (at.Before(begin) || at.After(expiry)) && by.verify(chain, begin) == nil {
		err = &ValidityError{id, at, begin, expiry}
	}
	if err == nil {
		err = r.revoked.CheckChain(chain, id)
	}
	return id, err
}

// verify checks the signatures and the validity periods of a certificate chain.
func (r *Roots) verify(chain []*x509.Certificate, at time.Time) error {
	if r.verified == nil {
		_, err := r.chains(chain, at)
		return err
	}
	key := r.chainKey(chain)
	if r.verified.holds(key, at) {
		return nil
	}
	found, err := r.chains(chain, at)
	if err == nil {
		begin, expiry := Window(found[0])
		r.verified.add(key, validity{begin, expiry})
	}
	return err
}

// chains returns the chains from the leaf certificate to a root. If there is none, it returns an
// error.
func (r *Roots) chains(chain []*x509.Certificate, at time.Time) ([][]*x509.Certificate, error) {
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	return chain[0].Verify(x509.VerifyOptions{
		Roots: r.pool, Intermediates: intermediates, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
}

// checkPurpose returns an error if a certificate of the chain has the wrong key usages or belongs
// to another trust domain.
func (r *Roots) checkPurpose(chain []*x509.Certificate, id spiffe.ID, usages []x509.ExtKeyUsage) error {
	leaf := chain[0]
	switch {
	case id.TrustDomain() != r.domain:
		return fmt.Errorf("certificate of %s: want one of trust domain %s", id, r.domain)
	case leaf.IsCA || leaf.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0:
		return fmt.Errorf("certificate of %s: it is a CA's, which is no SVID", id)
	case leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return fmt.Errorf("certificate of %s: lacks the key usage digitalSignature", id)
	}
	for _, u := range usages {
		if !slices.Contains(leaf.ExtKeyUsage, u) {
			return fmt.Errorf("certificate of %s: lacks the extended key usage %s", id, usageName(u))
		}
	}
	for _, c := range chain[1:] {
		if err := r.checkIssuer(c); err != nil {
			return fmt.Errorf("%w: sign it anew with florctl ca sign", err)
		}
		for _, u := range usages {
			if len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) > 0 && !slices.Contains(c.ExtKeyUsage, u) {
				return fmt.Errorf("issuing certificate %q: lacks the extended key usage %s", c.Subject.CommonName, usageName(u))
			}
		}
	}
	return nil
}

func usageName(u x509.ExtKeyUsage) string {
	if u == x509.ExtKeyUsageServerAuth {
		return "serverAuth"
	}
	return "clientAuth"
}

// Window returns the period in which all certificates of a chain are valid.
func Window(chain []*x509.Certificate) (begin, expiry time.Time) {
	expiry = chain[0].NotAfter
	for _, c := range chain {
		if c.NotBefore.After(begin) {
			begin = c.NotBefore
		}
		if c.NotAfter.Before(expiry) {
			expiry = c.NotAfter
		}
	}
	return begin, expiry
}

var oidSubjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

// LeafID returns the SPIFFE ID in the only URI SAN of a certificate. It returns an error if there
// is no URI SAN or more than one, or if the ID is not written exactly as ID.String writes it.
func LeafID(c *x509.Certificate) (spiffe.ID, error) {
	const uriTag = 6 // uniformResourceIdentifier of GeneralName (RFC 5280 section 4.2.1.6)
	var uris []string
	for _, e := range c.Extensions {
		var names []asn1.RawValue
		if !e.Id.Equal(oidSubjectAltName) {
			continue
		}
		if _, err := asn1.Unmarshal(e.Value, &names); err != nil {
			return spiffe.ID{}, fmt.Errorf("subject alternative names: %w", err)
		}
		for _, n := range names {
			if n.Class == asn1.ClassContextSpecific && n.Tag == uriTag {
				uris = append(uris, string(n.Bytes))
			}
		}
	}
	if len(uris) != 1 {
		return spiffe.ID{}, fmt.Errorf("certificate with %d URI SANs, want exactly one", len(uris))
	}
	id, err := spiffe.ParseID(uris[0])
	if err == nil && id.String() != uris[0] {
		return spiffe.ID{}, fmt.Errorf("URI SAN %q: want it written as %s", uris[0], id)
	}
	return id, err
}

// SVID is an X.509-SVID that was delivered to this host, with its private key.
type SVID struct {
	ID    spiffe.ID
	Cert  tls.Certificate     // Leaf is set
	Chain []*x509.Certificate // the same chain, leaf first
}

// ParseSVID parses an SVID and its private key from PEM. It returns an error if the SVID is not for
// the given SPIFFE ID, or if the key does not belong to it.
func ParseSVID(svid, key []byte, id spiffe.ID) (*SVID, error) {
	cert, err := tls.X509KeyPair(svid, key)
	if err != nil {
		return nil, err
	}
	s := &SVID{ID: id, Cert: cert, Chain: []*x509.Certificate{cert.Leaf}}
	for i, der := range cert.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of the chain: %w", i+1, err)
		}
		s.Chain = append(s.Chain, c)
	}
	found, err := LeafID(s.Chain[0])
	if err != nil {
		return nil, err
	}
	if found != id {
		return nil, fmt.Errorf("certificate is of %s, want %s", found, id)
	}
	return s, nil
}

// Check verifies the SVID at the given time, as peers with the given roots do, both as a server and
// as a client. It returns the same errors as Roots.Verify.
func (s *SVID) Check(r *Roots, at time.Time) error {
	_, err := r.Verify(s.Chain, at, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	return err
}

// Valid reports whether the leaf certificate of the SVID is valid at the given time.
func (s *SVID) Valid(at time.Time) bool {
	leaf := s.Cert.Leaf
	return !at.Before(leaf.NotBefore) && !at.After(leaf.NotAfter)
}
