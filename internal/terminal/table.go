package terminal

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table aligns rows of cells, each of which is printed as Text: no cell begins another cell or
// row. Flush prints them.
type Table struct{ w *tabwriter.Writer }

// NewTable returns a table with a first row, unless head is empty.
func NewTable(w io.Writer, head ...any) *Table {
	t := &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if len(head) > 0 {
		t.Row(head...)
	}
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = Text(fmt.Sprint(c))
	}
	fmt.Fprintln(t.w, strings.Join(texts, "\t"))
}

// Flush prints the rows.
func (t *Table) Flush() error { return t.w.Flush() }
