package hostapi

import (
	"context"
	"net/http"
	"net/url"
)

// PathCRL is where a node gets the CRL of a kind's process, with ?has=, the number of the one
// that it has.
func PathCRL(kind string) string { return "/" + kind + "/crl" }

// CRL is a certificate revocation list (RFC 5280) of an issuing CA.
type CRL struct {
	Number string `json:"number"`        // in hex
	List   int64  `json:"list"`          // number of the cluster's revocation list that it is of; 0 for none
	CRL    string `json:"crl,omitempty"` // in PEM, where it is another than the caller has
	Issuer string `json:"issuer"`        // certificate of the CA that signed it, in PEM
}

// CRL gets the newest of a kind, which has no text where that is the one of a number.
func (p *Calls) CRL(ctx context.Context, kind, has string) (c CRL, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		return s.call(ctx, http.MethodGet, PathCRL(kind)+"?"+url.Values{"has": {has}}.Encode(), s.device(), nil, &c)
	})
	return c, err
}
