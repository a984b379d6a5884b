package auditlog

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/florete/florete/providers/printable"
	"github.com/florete/florete/providers/server"
)

// together is for how many rows columns are as wide as each of them needs.
const together = 1000

// Print prints rows as a table, or as one JSON object per line.
func Print(out io.Writer, rows iter.Seq2[Row, error], asJSON bool) error {
	table, n := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), 0
	for r, err := range rows {
		switch {
		case err != nil:
		case asJSON:
			_, err = fmt.Fprintf(out, "%s\n", printable.JSON(r.Text))
		default:
			r.print(table)
			if n++; n%together == 0 {
				err = table.Flush()
			}
		}
		if err != nil {
			return err
		}
	}
	return table.Flush()
}

func (r Row) print(out io.Writer) {
	if r.At != "" {
		fmt.Fprintf(out, "%s\t", r.At)
	}
	fmt.Fprint(out, r.Time.Format(time.RFC3339))
	for _, column := range []string{
		string(r.Outcome), r.Code, cmp.Or(r.Caller, r.Detail["account"], r.From),
		cmp.Or(r.Need, r.Detail["what"], r.Kind), cmp.Or(r.Message, r.counts()),
	} {
		fmt.Fprint(out, "\t", printable.Text(column))
	}
	fmt.Fprintln(out)
}

// counts are those of a sum.
func (r Row) counts() string {
	if r.Outcome != server.Summed {
		return ""
	}
	var all []string
	for code, n := range r.Detail {
		all = append(all, code+" "+n)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
