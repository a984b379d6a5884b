package auditview

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/providers/server"
)

// A Filter selects rows of an audit log, for example by time or by caller. A field with its zero
// value does not restrict the selection.
type Filter struct {
	After, Before         Moment
	Limit                 int
	Caller, Kind, Outcome string
}

// Flags adds the flags --after, --before, --limit, --caller, --kind and --outcome to a command.
// They set the fields of the filter.
func (f *Filter) Flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&f.After, "after", "print rows after this `TIME`: a time as --json prints it, or how long ago, such as 30m or 24h")
	flags.Var(&f.Before, "before", "print rows before this `TIME`: a time as --json prints it, or how long ago, such as 30m or 24h")
	flags.IntVar(&f.Limit, "limit", 0, "print at most `N` rows: the first rows with --after, otherwise the last; 0 prints all")
	flags.StringVar(&f.Caller, "caller", "", "print rows about callers whose SPIFFE ID ends with this `ID`, such as node/ursula")
	flags.StringVar(&f.Kind, "kind", "", "print rows about needs of this `KIND`, such as cert or oidc")
	flags.StringVar(&f.Outcome, "outcome", "", "print rows with this `OUTCOME`: granted, denied, invalid, transient or summed")
}

// Rows yields those rows of log that the filter selects. The rows of log must be in order of time,
// and must all be later than f.After. If the filter has a limit, Rows yields the first selected
// rows if f.After is set, and otherwise the last. An error of log ends the sequence.
func (f *Filter) Rows(log iter.Seq2[Row, error]) iter.Seq2[Row, error] {
	passed := func(yield func(Row, error) bool) {
		for r, err := range log {
			switch {
			case err != nil:
				yield(r, err)
				return
			case !f.Before.IsZero() && !r.Time.Before(f.Before.Time):
				return
			case f.match(r.Row) && !yield(r, nil):
				return
			}
		}
	}
	switch {
	case f.Limit <= 0:
		return passed
	case f.After.IsZero():
		return last(passed, f.Limit)
	}
	return func(yield func(Row, error) bool) {
		n := 0
		for r, err := range passed {
			if !yield(r, err) {
				return
			}
			if n++; n == f.Limit {
				return
			}
		}
	}
}

func (f *Filter) match(r server.Row) bool {
	return (f.Caller == "" || r.Caller == f.Caller || strings.HasSuffix(r.Caller, "/"+f.Caller)) &&
		(f.Kind == "" || r.Kind == f.Kind) &&
		(f.Outcome == "" || string(r.Outcome) == f.Outcome)
}

// last yields the last n rows of a log. It keeps at most n rows in memory.
func last(all iter.Seq2[Row, error], n int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var kept []Row
		at := 0 // the oldest, once there are n
		for r, err := range all {
			switch {
			case err != nil:
				yield(r, err)
				return
			case len(kept) < n:
				kept = append(kept, r)
			default:
				kept[at] = r
				at = (at + 1) % n
			}
		}
		for i := range kept {
			if !yield(kept[(at+i)%len(kept)], nil) {
				return
			}
		}
	}
}

// A Moment is a point in time that a user passes in a flag of a command. It implements pflag.Value.
type Moment struct{ time.Time }

// Type returns the placeholder for the value in help texts.
func (m *Moment) Type() string { return "TIME" }

func (m *Moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339Nano)
}

// Set parses a time, as in RFC 3339, or a duration. The duration 24h means the time 24 hours ago.
func (m *Moment) Set(text string) error {
	if d, err := time.ParseDuration(text); err == nil {
		m.Time = time.Now().Add(-d)
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("want a time such as 2026-07-14T08:30:00Z, or how long ago, such as 30m")
	}
	m.Time = t
	return nil
}
