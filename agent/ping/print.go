package ping

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/florete/florete/internal/terminal"
)

// Print writes a line for each step, and what to do about each that failed.
func Print(w io.Writer, r Result) error {
	var out bytes.Buffer
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, s := range r.Steps {
		state, detail := "ok", s.Detail
		if s.Error != "" {
			state, detail = "BROKEN", s.Error
		}
		if s.Needs != "" {
			fmt.Fprintf(tw, "%s\t-\t\tnot tried: %s is broken\n", s.Name, s.Needs)
			continue
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", s.Name, state, elapsed(s.Nanoseconds), terminal.Text(detail))
	}
	tw.Flush()
	for _, s := range r.Steps {
		if s.Error != "" {
			fmt.Fprintf(&out, "broken: %s: %s\n", s.Name, terminal.Text(s.Remedy))
		}
	}
	_, err := out.WriteTo(w)
	return err
}

func elapsed(nanoseconds int64) string {
	d := time.Duration(nanoseconds)
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
