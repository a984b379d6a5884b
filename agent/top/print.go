package top

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/florete/florete/internal/terminal"
)

// Print writes a view as a table.
func Print(w io.Writer, v View) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s: %s, %s\n\n", cmp.Or(v.Host, "no manifest"), v.State, v.Time.Format("15:04:05"))
	t := terminal.NewTable(&out, "", "SERVICE", "PRINCIPAL", "CONNS", "OPENS/S", "IN/S", "OUT/S", "REFUSED", "REFUSED/S", "OVER")
	for _, r := range v.Rows {
		t.Row(r.Direction, name(strings.TrimSuffix(r.Target+":"+r.Port, ":")), name(r.Caller), r.Connections,
			fmt.Sprintf("%.1f", r.Opens), size(r.In), size(r.Out), r.Refusals, fmt.Sprintf("%.1f", r.Refused), r.Transport)
	}
	_ = t.Flush() // a buffer takes all
	_, err := out.WriteTo(w)
	return err
}

func name(s string) string { return cmp.Or(s, "(others)") }

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
