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

// NewStore creates a CA for the connections between provider hosts and the state store that they
// share. It is not part of the CA of the trust domain, because the processes that issue SVIDs keep
// their own state in that store.
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

// IssueMember issues a certificate for a server of the shared state store (a member). The addresses
// of the member are IP addresses or DNS names. The member uses the certificate as a server, and as
// a client of other members.
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

// IssueClient issues the certificate with which a provider host proves itself to the shared state
// store. The host uses it only as a client.
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
