package needstate

import (
	"encoding/json"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
)

// State is what activation knows of a need, with the transitions that only activation makes.
type State struct{ hostdir.NeedState }

// Save writes s where Layout.NeedState finds it.
func (s State) Save(l hostdir.Layout, need string) error {
	b, err := json.Marshal(s.NeedState)
	if err != nil {
		return err
	}
	return atomicfile.FileIn(l.NeedStateFile(need), append(b, '\n'), 0o644)
}

// setStatus changes the status.
func (s *State) setStatus(status hostdir.NeedStatus, now time.Time) {
	if s.State != status {
		s.State, s.StateSince = status, unixtime.Of(now)
	}
}
