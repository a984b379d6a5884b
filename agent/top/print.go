package top

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/florete/florete/internal/terminal"
)

// Print writes a view as a table.
func Print(w io.Writer, v View) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s: %s, %s\n\n", cmp.Or(v.Host, "no manifest"), v.State, v.Time.Format("15:04:05"))
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\tSERVICE\tPRINCIPAL\tCONNS\tOPENS/S\tIN/S\tOUT/S\tREFUSED\tREFUSED/S\tOVER")
	for _, r := range v.Rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%.1f\t%s\t%s\t%d\t%.1f\t%s\n", r.Direction, name(strings.TrimSuffix(r.Target+":"+r.Port, ":")), name(r.Caller),
			r.Connections, r.Opens, size(r.In), size(r.Out), r.Refusals, r.Refused, r.Transport)
	}
	tw.Flush()
	_, err := out.WriteTo(w)
	return err
}

func name(s string) string { return terminal.Text(cmp.Or(s, "(others)")) }

func size(bytes float64) string {
	const unit = 1024
	i := 0
	for ; bytes >= unit && i < 4; i++ {
		bytes /= unit
	}
	if i == 0 {
		return fmt.Sprintf("%.0f B", bytes)
	}
	return fmt.Sprintf("%.1f %ciB", bytes, " KMGT"[i])
}
