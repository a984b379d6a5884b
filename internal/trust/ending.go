package trust

import (
	"crypto/x509"
	"slices"
	"time"

	"github.com/florete/florete/internal/unixtime"
)

// EndingCertificate is a certificate that an operator should renew now. No program renews it
// automatically.
type EndingCertificate struct {
	Part string        `json:"part"` // "issuing" or "root"
	Name string        `json:"name"`
	Ends unixtime.Time `json:"ends"`
}

// IssuerEnds reports whether an operator should renew an issuing certificate now. It returns true
// after half of the certificate's lifetime.
func IssuerEnds(c *x509.Certificate, now time.Time) bool {
	return c.NotAfter.Sub(now) < c.NotAfter.Sub(c.NotBefore)/2
}

// RootEnds reports whether an operator should replace a root certificate now. It returns true in
// the last 30 days of the certificate's lifetime, or in the last fifth if that is shorter.
func RootEnds(c *x509.Certificate, now time.Time) bool {
	return c.NotAfter.Sub(now) < min(30*24*time.Hour, c.NotAfter.Sub(c.NotBefore)/5)
}

// Ending returns the certificates that an operator should renew now: root certificates, and issuing
// certificates in the chains of the given SVIDs. The roots and each SVID may be nil.
func Ending(svids []*SVID, roots *Roots, now time.Time) (found []EndingCertificate) {
	var seen []*x509.Certificate
	add := func(part string, ends bool, c *x509.Certificate) {
		if ends && !slices.ContainsFunc(seen, c.Equal) {
			seen = append(seen, c)
			found = append(found, EndingCertificate{part, c.Subject.CommonName, unixtime.Of(c.NotAfter)})
		}
	}
	for _, s := range svids {
		if s == nil {
			continue
		}
		for _, c := range s.Chain[1:] {
			add("issuing", IssuerEnds(c, now), c)
		}
	}
	if roots == nil {
		return found
	}
	for _, c := range roots.Certificates() {
		add("root", RootEnds(c, now), c)
	}
	return found
}
