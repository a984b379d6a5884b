package compile

import (
	"crypto/x509"
	"fmt"
	"time"

	"florete"
)

// checkRoots finds what is wrong with the root certificates of a trust domain: they
// are checked as PEM, one or several in each text.
func checkRoots(roots []string, trustDomain string, now time.Time) []Fault {
	var faults []Fault
	for i, text := range roots {
		if text == "" { // reported as such
			continue
		}
		refuse := func(id, problem, value, remedy string) {
			faults = append(faults, Fault{id, "error", fmt.Sprintf("trust.roots[%d]", i), problem, value, remedy})
		}
		certificates, err := florete.ParseCertificates([]byte(text))
		if err != nil {
			refuse("FL050", "not a certificate:", err.Error(), "write the ca.crt that florctl ca init made")
		}
		for _, c := range certificates {
			switch day := time.DateOnly; {
			case now.After(c.NotAfter):
				refuse("FL051", "the certificate expired on", c.NotAfter.Format(day), "make a new root with florctl ca init, and list both while hosts change over")
			case now.Before(c.NotBefore):
				refuse("FL052", "the certificate is not valid before", c.NotBefore.Format(day), "look at this machine's clock, or list it later")
			}
			if !c.BasicConstraintsValid || !c.IsCA || c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0 {
				refuse("FL053", "no certificate authority:", fmt.Sprintf("%q", c.Subject.String()), "write the ca.crt that florctl ca init made")
			}
			for _, u := range c.URIs {
				if u.Scheme == "spiffe" && trustDomain != "" && u.Host != trustDomain {
					refuse("FL054", "the certificate is of trust domain", fmt.Sprintf("%q", u.Host),
						fmt.Sprintf("make one with florctl ca init --trust-domain %s", trustDomain))
				}
			}
		}
	}
	return faults
}
