package hostapi

import (
	"context"
	"net/http"
	"net/url"
)

// PathCRL returns the path at which a node gets the certificate revocation list (CRL) of a provider
// process. The process is selected by its kind. The query parameter "has" is the number of the CRL
// that the node already has.
func PathCRL(kind string) string { return "/" + kind + "/crl" }

// CRL is a certificate revocation list (RFC 5280) of an issuing CA.
type CRL struct {
	Number string `json:"number"`        // CRL number in hex
	List   int64  `json:"list"`          // number of the revocation list that it was made from; 0 for none
	CRL    string `json:"crl,omitempty"` // PEM; empty if the caller already has it
	Issuer string `json:"issuer"`        // certificate of the CA that signed the CRL, in PEM
}

// CRL gets the newest CRL of a kind's provider process. The result is without the list if its
// number equals has.
func (p *Calls) CRL(ctx context.Context, kind, has string) (c CRL, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		return s.call(ctx, http.MethodGet, PathCRL(kind)+"?"+url.Values{"has": {has}}.Encode(), s.device(), nil, &c)
	})
	return c, err
}
