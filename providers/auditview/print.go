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

// together is how many lines have columns of the same widths.
const together = 1000

// repeated is within which time equal rows are one line: each process of a host records the policy
// that came into force, and a caller that is refused tries again.
const repeated = time.Minute

// Print prints rows as a table, or as one JSON object per line. The table joins rows of the same
// minute that differ in their time alone, and shows their number.
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

// printer collects the lines that are printed together. The first of them is the heading.
type printer struct {
	out    io.Writer
	headed bool
	lines  [][]any
	equal  map[[8]string]*sum
}

// sum is of equal rows, whose line is at a place.
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

// cells are those of a line but for the time: of the row's host first.
func (r Row) cells() [8]string {
	return [8]string{
		r.At, string(r.Outcome), r.Code, r.Kind, cmp.Or(r.Need, r.Detail["what"]),
		cmp.Or(r.Caller, r.Detail["account"]), r.From, cmp.Or(r.Message, r.counts()),
	}
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
