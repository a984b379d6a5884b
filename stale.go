package florete

import (
	"encoding/json"
	"os"
	"time"
)

// Stale is how long the host of a manifest has received no answer about its documents, not
// even that they are unchanged, when that is longer than its topology allows; else zero.
// Documents that the closure brought count as an answer. What cannot be read counts as none.
func (l Layout) Stale(m Manifest, now time.Time) time.Duration {
	for _, n := range m.Needs {
		if n.Renew.StaleAfter == 0 {
			continue
		}
		var state struct{ Fulfilled int64 }
		if b, err := os.ReadFile(l.NeedState(n.ID)); err == nil {
			_ = json.Unmarshal(b, &state)
		}
		last := time.Unix(state.Fulfilled, 0)
		if fi, err := os.Stat(Current(l.Documents())); err == nil && fi.ModTime().After(last) && !fi.ModTime().After(now) {
			last = fi.ModTime()
		}
		if age := now.Sub(last); last.Unix() != 0 && age > time.Duration(n.Renew.StaleAfter)*time.Second {
			return age.Round(time.Second)
		}
	}
	return 0
}
