package hostdir

import (
	"os"
	"time"

	"github.com/florete/florete/internal/document"
)

// Stale is how long the host of a manifest has received no answer about its documents, not
// even that they are unchanged, when that is longer than its topology allows; else zero.
// Documents that the closure brought count as an answer. What cannot be read counts as none.
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
