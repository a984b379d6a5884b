package terminal

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table prints rows of cells in aligned columns when Flush is called. Cells may contain untrusted
// text, which cannot begin another cell or row, nor control the terminal.
type Table struct{ w *tabwriter.Writer }

// NewTable returns a table that is printed to w by Flush. If head is given, it is the first row.
func NewTable(w io.Writer, head ...any) *Table {
	t := &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if len(head) > 0 {
		t.Row(head...)
	}
	return t
}

// Row adds a row of cells to the table.
func (t *Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = Text(fmt.Sprint(c))
	}
	fmt.Fprintln(t.w, strings.Join(texts, "\t"))
}

// Flush prints the table to its writer.
func (t *Table) Flush() error { return t.w.Flush() }
