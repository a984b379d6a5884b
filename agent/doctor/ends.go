package doctor

import (
	"fmt"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/identity"
)

// ends finds what a person must sign anew: the issuing certificates of this host's SVIDs,
// and the roots that it trusts.
func (h *host) ends() (found []Finding) {
	var provider string
	var svids []*florete.SVID
	for _, n := range h.manifest.Needs {
		if id, err := n.CertID(); err == nil && identity.Delivers(n) {
			provider = n.Providers[0]
			svids = append(svids, h.identities.SVID(id))
		}
	}
	for _, c := range florete.Ending(svids, h.identities.Trust, h.now) {
		cure := "replace it step by step with florctl ca rotate"
		if c.Part == "issuing" {
			cure = fmt.Sprintf("where the root's key is, run: ssh %s cat /var/lib/florete-provider/cert/issuing.csr | florctl ca sign | ssh %[1]s flor-provider install-cert", provider)
		}
		found = append(found, do(fmt.Sprintf("the %s certificate %q ends on %s", c.Part, c.Name, c.Ends.UTC().Format(time.DateOnly)), cure))
	}
	return found
}
