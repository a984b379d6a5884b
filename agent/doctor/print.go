package doctor

import (
	"bytes"
	"fmt"
	"io"

	"github.com/florete/florete/internal/terminal"
)

// Print writes a report as text for people. Each check has one line, followed by its findings with
// their remedies.
func Print(w io.Writer, r Report) error {
	var out bytes.Buffer
	for _, c := range r.Checks {
		mark := "ok"
		if len(c.Findings) > 0 {
			mark = "!!"
		}
		fmt.Fprintf(&out, "%s  %-11s  %s\n", mark, c.Name, terminal.Text(c.Seen))
		for _, f := range c.Findings {
			kind, cure := "fix", f.Fix
			if cure == "" {
				kind, cure = "do", f.Do
			}
			fmt.Fprintf(&out, "    %s\n      %s: %s\n", terminal.Text(f.Problem), kind, terminal.Text(cure))
		}
	}
	switch n := r.Findings(); n {
	case 0:
		fmt.Fprintln(&out, "all fine")
	case 1:
		fmt.Fprintln(&out, "1 finding")
	default:
		fmt.Fprintf(&out, "%d findings\n", n)
	}
	_, err := out.WriteTo(w)
	return err
}
