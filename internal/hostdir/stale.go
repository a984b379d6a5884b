package hostdir

import (
	"os"
	"time"

	"github.com/florete/florete/internal/document"
)

// Stale returns the time since the last answer of a provider about the host's documents. It returns
// zero if this time is within the limit of the manifest. Answers that the documents are unchanged
// count, and so do new documents from the closure. If the state cannot be read, Stale returns zero.
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
