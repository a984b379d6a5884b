package compile

import (
	"strings"
	"time"

	"github.com/florete/florete/internal/trust"
)

// CheckBundles returns faults in the trust bundles of foreign trust domains that Nix cannot find: a
// bundle that hosts cannot read, or a bundle whose roots have all expired.
func CheckBundles(federated map[string]Federated, now time.Time) []Fault {
	var faults []Fault
	for name, f := range federated {
		if f.TrustDomain == "" || f.Bundle == "" { // reported already
			continue
		}
		refuse := func(problem, value string) {
			faults = append(faults, Fault{"FL085", "error", "federated." + name + ".bundle", problem, value, "write what the bundle endpoint of " + f.TrustDomain + " serves now"})
		}
		b, err := trust.ParseBundle(f.TrustDomain, []byte(f.Bundle))
		if err != nil {
			refuse("no host can read it:", strings.TrimPrefix(err.Error(), "bundle of "+f.TrustDomain+": "))
			continue
		}
		var last time.Time
		for _, c := range b.Roots().Certificates() {
			if c.NotAfter.After(last) {
				last = c.NotAfter
			}
		}
		if now.After(last) {
			refuse("the last of its certificates expired on", last.Format(time.DateOnly))
		}
	}
	return faults
}
