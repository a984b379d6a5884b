package hostdir

import (
	"os"
	"time"

	"github.com/florete/florete/internal/document"
)

// Stale returns the time for which the host has received no answer about its documents, if that is
// longer than the manifest allows, and otherwise zero. An answer that they are unchanged counts,
// and so do documents from the closure. If the state cannot be read, Stale returns zero.
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
