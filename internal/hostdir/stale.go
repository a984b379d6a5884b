package hostdir

import (
	"os"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
)

// Stale returns the time for which no provider has answered a request for the host's documents. It
// returns zero if this time is shorter than the limit in the manifest, or if the state cannot be
// read. An answer without newer documents counts too, and so do new documents of the installed
// system.
func (l Layout) Stale(m document.Manifest, now time.Time) time.Duration {
	for _, n := range m.Needs {
		if n.Renew.StaleAfter == 0 {
			continue
		}
		state, _ := l.NeedState(n.ID)
		last := state.Fulfilled.Time
		if fi, err := os.Stat(Current(l.Documents())); err == nil && fi.ModTime().After(last) && !fi.ModTime().After(now) {
			last = fi.ModTime()
		}
		if age := now.Sub(last); !last.IsZero() && age > time.Duration(n.Renew.StaleAfter)*time.Second {
			return age.Round(time.Second)
		}
	}
	return 0
}

// Withheld returns the oldest document in force that the revocation list does not allow at the time
// now. It returns nil if the list allows all documents, if the host does not fetch documents over
// the network, or if the documents cannot be read.
func (l Layout) Withheld(m document.Manifest, list *trust.Revocations, now time.Time) *trust.Withheld {
	if m.Documents() == nil {
		return nil
	}
	var inForce []document.Envelope
	for _, kind := range []string{document.DocManifest, document.DocPolicy} {
		if e, err := document.ReadEnvelope(Current(l.Documents()), kind); err == nil {
			inForce = append(inForce, e)
		}
	}
	return list.Withheld(inForce, now)
}
