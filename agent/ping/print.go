package ping

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/florete/florete/internal/terminal"
)

// Print writes the result of a ping as text for people, with one line for each step, and the remedy
// after a failed step.
func Print(w io.Writer, r Result) error {
	var out bytes.Buffer
	t := terminal.NewTable(&out)
	for _, s := range r.Steps {
		state, detail := "ok", s.Detail
		if s.Error != "" {
			state, detail = "BROKEN", s.Error
		}
		if s.Needs != "" {
			t.Row(s.Name, "-", "", fmt.Sprintf("not tried: %s is broken", s.Needs))
			continue
		}
		t.Row(s.Name, state, elapsed(s.Nanoseconds), detail)
	}
	_ = t.Flush() // writing to a buffer never fails
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
