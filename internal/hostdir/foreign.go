package hostdir

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
)

// Foreign are the bundles of foreign trust domains in force on this host: those that were
// delivered, and where nothing was, or something older, those of the manifest. With problems,
// what could not be read is left out for what the manifest has.
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
		if delivered.CheckAfter(b) == nil { // else the flake has the newer one
			all[len(all)-1] = delivered
		}
	}
	return all, problems
}
