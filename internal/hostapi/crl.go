package hostapi

import (
	"context"
	"net/http"
	"net/url"
)

// PathCRL returns the URL path from which nodes fetch the certificate revocation list (CRL) of the
// provider process that answers a kind of need. The query parameter "has" is the number of the CRL
// that the node already has.
func PathCRL(kind string) string { return "/" + kind + "/crl" }

// CRL is a provider's answer to a request for the certificate revocation list (RFC 5280) of its
// issuing CA.
type CRL struct {
	Number string `json:"number"`        // CRL number in hex
	List   int64  `json:"list"`          // number of the revocation list from which the CRL was made; 0 for none
	CRL    string `json:"crl,omitempty"` // PEM; empty if the caller already has it
	Issuer string `json:"issuer"`        // certificate of the CA that signed the CRL, in PEM
}

// CRL fetches the newest certificate revocation list of the provider process that answers a kind of
// need. The caller passes the number of the list that it already has, or "". If no list is newer,
// the result contains none.
func (p *Calls) CRL(ctx context.Context, kind, has string) (c CRL, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		return s.call(ctx, http.MethodGet, PathCRL(kind)+"?"+url.Values{"has": {has}}.Encode(), s.device(), nil, &c)
	})
	return c, err
}
