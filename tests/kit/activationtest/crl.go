package activationtest

import (
	"crypto/x509"
	"math/big"
	"net/http"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
)

// SetCRL makes the provider return an empty CRL with the given number. The argument list is the
// number of the revocation list from which the CRL claims to be made. The given authority signs the
// CRL. If it is nil, the cluster's own CA does.
func (p *Provider) SetCRL(number, list int64, by *ca.Authority) {
	issuing := p.cluster.CA.Issuing
	if by == nil {
		by = issuing
	}
	signed, err := by.SignCRL([]x509.RevocationListEntry{}, big.NewInt(number), 24*time.Hour, time.Now())
	p.cluster.must(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crl = hostapi.CRL{Number: big.NewInt(number).Text(16), List: list, CRL: string(trust.EncodeCRLs(signed)), Issuer: string(ca.EncodeCertificates(issuing.Certificate))}
}

func (p *Provider) sendCRL(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is := p.crl
	p.crls++
	switch {
	case is.CRL == "":
		reply(w, nil, hostapi.Errorf(hostapi.CodeUnknownMethod, "%s: no such endpoint", r.URL.Path))
		return
	case r.URL.Query().Get("has") == is.Number:
		is.CRL = ""
	}
	reply(w, is, nil)
}

// CRLRequests returns how often hosts have requested a CRL from the provider.
func (p *Provider) CRLRequests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crls
}
