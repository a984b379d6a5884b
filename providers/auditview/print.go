package auditview

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/providers/server"
)

// together is the number of lines that Print aligns in the same columns.
const together = 1000

// repeated is the time within which Print joins equal rows in one line. Equal rows are common: each
// process of a host records a new policy, and a refused caller tries again.
const repeated = time.Minute

// Print prints audit rows as a table, or as one JSON object per line. The table shows successive
// rows that differ only in their time, within one minute, as one line with their number. If rows
// yields an error, Print prints the rows before it and returns the error.
func Print(out io.Writer, rows iter.Seq2[Row, error], asJSON bool) error {
	p := printer{out: out}
	for r, err := range rows {
		switch {
		case err != nil:
		case asJSON:
			err = p.json(r)
		default:
			err = p.add(r)
		}
		if err != nil {
			return errors.Join(p.flush(), err)
		}
	}
	return p.flush()
}

// printer collects the lines that are printed together. The first one is the heading.
type printer struct {
	out    io.Writer
	headed bool
	lines  [][]any
	equal  map[[8]string]*sum
}

// sum counts equal rows that share a line.
type sum struct {
	at, rows int
	first    time.Time
}

func (p *printer) json(r Row) error {
	_, err := fmt.Fprintf(p.out, "%s\n", terminal.JSON(r.Text))
	return err
}

func (p *printer) add(r Row) error {
	cells := r.cells()
	if s := p.equal[cells]; s != nil && r.Time.Sub(s.first) < repeated {
		s.rows++
		line := p.lines[s.at]
		line[len(line)-1] = strings.TrimSpace(fmt.Sprintf("%s (%d times until %s)", cells[7], s.rows, r.Time.Format(time.TimeOnly)))
		return nil
	}
	if len(p.lines) >= together {
		if err := p.flush(); err != nil {
			return err
		}
	}
	head, line := []any{"TIME", "DECISION", "CODE", "KIND", "NEED", "CALLER", "FROM", "MESSAGE"}, []any{r.Time.Format(time.RFC3339)}
	for _, c := range cells[1:] {
		line = append(line, c)
	}
	if r.At != "" {
		head, line = slices.Insert(head, 0, any("HOST")), slices.Insert(line, 0, any(r.At))
	}
	if !p.headed {
		p.headed, p.lines = true, append(p.lines, head)
	}
	if p.equal == nil {
		p.equal = map[[8]string]*sum{}
	}
	p.equal[cells] = &sum{len(p.lines), 1, r.Time}
	p.lines = append(p.lines, line)
	return nil
}

func (p *printer) flush() error {
	if len(p.lines) == 0 {
		return nil
	}
	table := terminal.NewTable(p.out, p.lines[0]...)
	for _, line := range p.lines[1:] {
		table.Row(line...)
	}
	p.lines, p.equal = nil, nil
	return table.Flush()
}

// cells returns the cells of a row's line, except the time. The first cell is the row's host.
func (r Row) cells() [8]string {
	return [8]string{
		r.At, string(r.Outcome), r.Code, r.Kind, cmp.Or(r.Need, r.Detail["what"]),
		cmp.Or(r.Caller, r.Detail["account"]), r.From, cmp.Or(r.Message, r.counts()),
	}
}

// counts describes the counts of a summed row.
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
