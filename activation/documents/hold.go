package documents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
)

// LongestHold is the maximum duration of a hold, so that a forgotten hold ends by itself.
const LongestHold = 24 * time.Hour

// hold keeps documents from the network from being put in force, except by a commit of an operator.
type hold struct {
	Until unixtime.Time `json:"until"`
}

// Hold keeps documents from the network from being put in force for the duration d. A duration of
// zero ends the hold. If a longer hold is already in place, nothing changes and began is false.
func Hold(l hostdir.Layout, d time.Duration) (began bool, err error) {
	unlock, err := lock(l)
	if err != nil {
		return false, err
	}
	defer unlock()
	if d == 0 {
		if err := os.Remove(l.HoldFile()); !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		return false, nil
	}
	now := time.Now()
	if h := readHold(l, now); h.Until.After(now.Add(d)) {
		return false, nil
	}
	b, err := json.Marshal(hold{unixtime.Of(now.Add(d))})
	if err != nil {
		return false, err
	}
	return true, atomicfile.File(l.HoldFile(), append(b, '\n'), 0o644)
}

// readHold returns the current hold, or the zero hold. A hold that cannot be read, or that dates
// from before the clock was set back, is ignored.
func readHold(l hostdir.Layout, now time.Time) (h hold) {
	b, err := os.ReadFile(l.HoldFile())
	if err != nil || json.Unmarshal(b, &h) != nil || !h.Until.After(now) || h.Until.After(now.Add(LongestHold+time.Minute)) {
		return hold{}
	}
	return h
}

// isHeld returns an error if an operator holds documents back.
func (s *Store) isHeld() error {
	h := readHold(s.layout, time.Now())
	if h.Until.IsZero() {
		return nil
	}
	return fmt.Errorf("an operator has it wait until %s: flor sync", h.Until.UTC().Format("2006-01-02 15:04:05 MST"))
}
