package advance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/rollout"
	"github.com/florete/florete/providers/store"
)

// Status describes a rollout: its state, and the progress of each wave.
type Status struct {
	rollout.State
	Progress []Wave `json:"progress"` // empty after the rollout has ended
}

// Wave is the progress of one wave of a rollout. A wave is a group of hosts that receive the new
// version at the same stage.
type Wave struct {
	Wave    int `json:"wave"` // 0 for provider hosts that receive policies first
	Hosts   int `json:"hosts"`
	Offered int `json:"offered"` // number of hosts to which the version is offered
	InForce int `json:"inForce"` // number of hosts that reported the version in force
}

// StatusOf returns the status of the rollout in progress or, if there is none, of the last rollout.
// If there never was a rollout, it returns the zero Status.
func StatusOf(ctx context.Context, a archive.Archive) (Status, error) {
	at, err := a.Rollout(ctx)
	s := Status{at.State, []Wave{}}
	if err != nil || !at.AtWork() {
		return s, err
	}
	hosts, err := a.Waited(ctx, at)
	if errors.Is(err, store.ErrNotFound) { // the rollout has ended meanwhile
		return s, nil
	}
	if err != nil {
		return s, err
	}
	read := reader{a, ctx, nil}
	waves := make([]Wave, at.Waves+1)
	for _, h := range hosts {
		w := &waves[h.Wave]
		w.Hosts++
		stage, _ := at.Stage(h.Name, h.Wave, h.Group)
		if stage == rollout.StageVersion || stage == rollout.StageWhole || h.Wave == 0 && stage == rollout.StagePolicy {
			w.Offered++
			if h.InForce(read.report(h.Name)) {
				w.InForce++
			}
		}
	}
	for i, w := range waves {
		if w.Wave = i; w.Hosts > 0 {
			s.Progress = append(s.Progress, w)
		}
	}
	return s, read.failed
}

// Print writes the status as text for people.
func (s Status) Print(w io.Writer) error {
	if s.Serial == 0 {
		_, err := fmt.Fprintln(w, "no version has been rolled out in waves")
		return err
	}
	fmt.Fprintf(w, "%s\n", Describe(s.State))
	fmt.Fprintf(w, "before it serial %d; began %s%s\n", s.Former, clock(s.Began), map[bool]string{true: ", ended " + clock(s.Ended)}[!s.Ended.IsZero()])
	if s.Blocked != "" {
		fmt.Fprintf(w, "has yet to go back: %s\n", s.Blocked)
	}
	if len(s.Progress) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WAVE\tHOSTS\tOFFERED\tIN FORCE")
	for _, p := range s.Progress {
		name := fmt.Sprint(p.Wave)
		if p.Wave == 0 {
			name = "policies"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\n", name, p.Hosts, p.Offered, p.InForce)
	}
	return t.Flush()
}

func clock(t unixtime.Time) string { return t.UTC().Format(time.RFC3339) }
