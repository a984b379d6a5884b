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

// LongestHold is the maximum duration of a hold. It ensures that a hold ends even if the operator
// forgets it.
const LongestHold = 24 * time.Hour

// hold suspends documents from the network. While it lasts, only a change of an operator puts such
// documents in force.
type hold struct {
	Until unixtime.Time `json:"until"`
}

// Hold suspends documents from the network for the duration d, and returns true. During this time,
// such documents come into force only through a change of an operator. If d is zero, Hold ends the
// suspension and returns false. If documents are already suspended for longer, Hold changes nothing
// and returns false.
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

// readHold returns the current hold, or the zero value if there is none. It ignores a hold that
// cannot be read. It also ignores a hold that would last longer than LongestHold, because the clock
// was then set back.
func readHold(l hostdir.Layout, now time.Time) (h hold) {
	b, err := os.ReadFile(l.HoldFile())
	if err != nil || json.Unmarshal(b, &h) != nil || !h.Until.After(now) || h.Until.After(now.Add(LongestHold+time.Minute)) {
		return hold{}
	}
	return h
}

// isHeld returns an error if an operator has suspended documents from the network.
func (s *Store) isHeld() error {
	h := readHold(s.layout, time.Now())
	if h.Until.IsZero() {
		return nil
	}
	return fmt.Errorf("an operator has it wait until %s: flor sync", h.Until.UTC().Format("2006-01-02 15:04:05 MST"))
}
