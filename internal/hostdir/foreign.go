package hostdir

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
)

// Foreign returns the trust bundles of foreign trust domains that are in force on this host. For
// each domain, this is the delivered bundle, or the bundle in the manifest if that is newer or none
// was delivered. If a delivered bundle cannot be read, Foreign uses the manifest's bundle and adds
// the error to problems.
func (l Layout) Foreign(m document.Manifest) (all []*trust.Bundle, problems []error) {
	for _, f := range m.Federation {
		b, err := trust.ParseBundle(f.TrustDomain, []byte(f.Bundle))
		if err != nil {
			problems = append(problems, fmt.Errorf("manifest of %s: %w", m.Host, err))
			continue
		}
		all = append(all, b)
		text, err := ReadDelivered(l.Need(f.Need), document.FileTrustBundle)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, fmt.Errorf("need %q: %w", f.Need, err))
			}
			continue
		}
		delivered, err := trust.ParseBundle(f.TrustDomain, text)
		if err != nil {
			problems = append(problems, fmt.Errorf("need %q: %s: %w", f.Need, document.FileTrustBundle, err))
			continue
		}
		if delivered.CheckAfter(b) == nil { // otherwise the manifest has the newer one
			all[len(all)-1] = delivered
		}
	}
	return all, problems
}
