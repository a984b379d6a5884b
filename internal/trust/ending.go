package trust

import (
	"crypto/x509"
	"slices"
	"time"

	"github.com/florete/florete/internal/unixtime"
)

// EndingCertificate is one that a person has to sign anew: nothing else can.
type EndingCertificate struct {
	Part string        `json:"part"` // "issuing" or "root"
	Name string        `json:"name"`
	Ends unixtime.Time `json:"ends"`
}

// IssuerEnds reports whether an issuing certificate should be signed anew: half of its life
// is over.
func IssuerEnds(c *x509.Certificate, now time.Time) bool {
	return c.NotAfter.Sub(now) < c.NotAfter.Sub(c.NotBefore)/2
}

// RootEnds reports whether a root should be replaced: 30 days, or a fifth of its life where
// that is less, are left.
func RootEnds(c *x509.Certificate, now time.Time) bool {
	return c.NotAfter.Sub(now) < min(30*24*time.Hour, c.NotAfter.Sub(c.NotBefore)/5)
}

// Ending lists the issuing certificates that some SVIDs lead to, and the roots that a host
// trusts, which end. Nil SVIDs and roots are left out.
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
