package ca

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"time"
)

// StoreLifetime is the lifetime of the certificates of a state store's members and clients.
const StoreLifetime = 365 * 24 * time.Hour

// StoreMember is the common name in the certificates of a state store's members. The common name
// distinguishes members from clients.
const StoreMember = "florete store member"

// NewStore makes the CA of the state store that provider hosts share. This CA is separate from the
// CA of the trust domain, because the store contains the state of the processes that issue SVIDs.
func NewStore(trustDomain string, now time.Time) (*Authority, error) {
	if _, err := domain(trustDomain); err != nil {
		return nil, err
	}
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: trustDomain + " store"},
		NotAfter:              now.Add(RootLifetime),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	c, err := create(t, t, key.Public(), key, now)
	return &Authority{Certificate: c, Key: key}, err
}

// IssueMember issues the certificate of a state store's member for its addresses, which may be IP
// addresses and names. The member also presents the certificate as a client of other members.
func (a *Authority) IssueMember(key crypto.PublicKey, addresses []string, until, now time.Time) (*x509.Certificate, error) {
	t := leaf(StoreMember, until, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	for _, address := range addresses {
		if ip := net.ParseIP(address); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, address)
		}
	}
	return create(t, a.Certificate, key, a.Key, now)
}

// IssueClient issues the certificate that a provider host presents as a client of the state store.
func (a *Authority) IssueClient(key crypto.PublicKey, host string, until, now time.Time) (*x509.Certificate, error) {
	return create(leaf("florete store client "+host, until, x509.ExtKeyUsageClientAuth), a.Certificate, key, a.Key, now)
}

func leaf(name string, until time.Time, usage ...x509.ExtKeyUsage) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           usage,
		BasicConstraintsValid: true,
	}
}
