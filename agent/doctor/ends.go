package doctor

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/identity"
)

// ends finds what a person must sign anew soon: the issuing certificates of this host's
// SVIDs, and the roots that it trusts. Nothing here can.
func (h *host) ends() (found []Finding) {
	var seen []*x509.Certificate
	soon := func(c *x509.Certificate) bool {
		if !florete.EndsSoon(c, h.now) || slices.ContainsFunc(seen, c.Equal) {
			return false
		}
		seen = append(seen, c)
		return true
	}
	problem := func(what string, c *x509.Certificate) string {
		return fmt.Sprintf("the %s certificate %q ends on %s", what, c.Subject.CommonName, c.NotAfter.Format(time.DateOnly))
	}
	for _, n := range h.manifest.Needs {
		id, err := n.CertID()
		svid := h.identities.SVID(id)
		if !identity.Delivers(n) || err != nil || svid == nil {
			continue
		}
		for _, c := range svid.Chain[1:] {
			if soon(c) {
				found = append(found, do(problem("issuing", c), fmt.Sprintf(
					"where the root's key is, run: ssh %s cat /var/lib/florete-provider/cert/issuing.csr | florctl ca sign | ssh %[1]s flor-provider install-cert", n.Providers[0])))
			}
		}
	}
	if h.identities.Trust == nil {
		return found // which is a finding of identity
	}
	for _, c := range h.identities.Trust.Certificates() {
		if soon(c) {
			found = append(found, do(problem("root", c), "make a new root with florctl ca init, and list both in trust.roots while hosts change over"))
		}
	}
	return found
}
