package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
)

// ends reports certificates that end soon and that only a person can renew. They are the issuing
// certificates of the host's SVIDs, the roots that the host trusts, and its certificates for etcd.
func (h *host) ends() (found []Finding) {
	var provider string
	var svids []*trust.SVID
	for _, n := range h.manifest.Needs {
		if id, err := n.CertID(); err == nil && hostdir.IsForwarderSVID(n) {
			provider = n.Providers[0]
			svids = append(svids, h.identities.SVID(id))
		}
	}
	for _, c := range trust.Ending(svids, h.identities.Trust, h.now) {
		cure := "replace it step by step with florctl ca rotate"
		if c.Part == "issuing" {
			cure = fmt.Sprintf("where the root's key is, run: ssh %s cat /var/lib/florete-provider/cert/issuing.csr | florctl ca sign | ssh %[1]s flor-provider install-cert", provider)
		}
		found = append(found, do(fmt.Sprintf("the %s certificate %q ends on %s", c.Part, c.Name, c.Ends.UTC().Format(time.DateOnly)), cure))
	}
	return append(found, h.storeEnds()...)
}

// storeEnds reports certificates for etcd that end soon. Nothing renews them automatically, and all
// of a cluster's certificates for etcd end on the same day.
func (h *host) storeEnds() (found []Finding) {
	if err := units.CheckStorePairs(filepath.Join(h.Etc, "store")); err != nil {
		found = append(found, do(err.Error(), "put there what florctl store issue wrote for this host"))
	}
	for _, name := range []string{"ca.crt", "client.crt", "member.crt"} {
		file := filepath.Join(h.Etc, "store", name)
		text, err := os.ReadFile(file)
		if err != nil {
			continue // this host has no such certificate
		}
		all, err := trust.ParseCertificates(text)
		if err != nil {
			found = append(found, do(fmt.Sprintf("%s: %v", file, err), "put there what florctl store issue wrote for this host"))
		}
		for _, c := range all {
			if trust.RootEnds(c, h.now) {
				cure := "on the operator's machine, run florctl store issue for this host, and put what it writes there"
				if name == "ca.crt" {
					cure = "on the operator's machine, run florctl store init, then florctl store issue for each provider host"
				}
				found = append(found, do(fmt.Sprintf("the certificate of the shared store in %s ends on %s", file, c.NotAfter.UTC().Format(time.DateOnly)), cure))
			}
		}
	}
	return found
}
