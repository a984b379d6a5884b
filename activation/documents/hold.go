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

// LongestHold bounds a hold: nobody forgets one for longer.
const LongestHold = 24 * time.Hour

// hold keeps what the network brings from coming in force, but for a commit of an operator's.
type hold struct {
	Until unixtime.Time `json:"until"`
}

// Hold has documents from the network wait for d from now on, zero to end that. Where they
// wait for longer already, they do, and began is false.
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

// readHold is the hold at a time, zero for none. One that cannot be read is none, and so is
// one from before the clock was set back.
func readHold(l hostdir.Layout, now time.Time) (h hold) {
	b, err := os.ReadFile(l.HoldFile())
	if err != nil || json.Unmarshal(b, &h) != nil || !h.Until.After(now) || h.Until.After(now.Add(LongestHold+time.Minute)) {
		return hold{}
	}
	return h
}

// isHeld is the error of what an operator has wait.
func (s *Store) isHeld() error {
	h := readHold(s.layout, time.Now())
	if h.Until.IsZero() {
		return nil
	}
	return fmt.Errorf("an operator has it wait until %s: flor sync", h.Until.UTC().Format("2006-01-02 15:04:05 MST"))
}
