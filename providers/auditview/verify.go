package auditview

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/providers/tlog"
)

// ErrNotVerified is the error of a log that failed verification. The details have already been
// printed.
var ErrNotVerified = errors.New("an audit log is not what it was: keep a copy of the provider's state, and see what hosts have witnessed: florctl status")

// PrintVerdicts prints the results of verifying audit logs, as text or as one JSON object per line.
// If verification found a fault in any log, the error is ErrNotVerified.
func PrintVerdicts(out io.Writer, all []tlog.Verdict, asJSON bool) (err error) {
	for _, v := range all {
		if len(v.Faults) > 0 {
			err = ErrNotVerified
		}
		if asJSON {
			b, failed := json.Marshal(v)
			if failed != nil {
				return failed
			}
			fmt.Fprintf(out, "%s\n", b)
			continue
		}
		text := "verified"
		if len(v.Faults) > 0 {
			text = fmt.Sprintf("NOT verified: %d rows were edited, %d are gone", v.Edited, v.Missing)
			if v.Doubled > 0 {
				text += fmt.Sprintf(", %d are there twice", v.Doubled)
			}
		}
		fmt.Fprintf(out, "%s: %d rows, %s\n", terminal.Text(v.Log), v.Rows, text)
		if v.Archived > 0 {
			fmt.Fprintf(out, "  %d rows are archived\n", v.Archived)
		}
		if v.Elsewhere > 0 {
			fmt.Fprintf(out, "  %d of them, of before %s, are not in the archive of this host, and were not verified\n", v.Elsewhere, v.Kept.Format("2006-01-02"))
		}
		for _, f := range v.Faults {
			fmt.Fprintf(out, "  %s\n", terminal.Text(f))
		}
	}
	return err
}

// PrintProof verifies a proof that an audit log contains a row, and prints the proof as text or
// JSON. If the proof is wrong, PrintProof prints nothing and returns the error.
func PrintProof(out io.Writer, p tlog.Proof, asJSON bool) error {
	if err := p.Verify(); err != nil {
		return err
	}
	if asJSON {
		b, err := json.Marshal(p)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", b)
		}
		return err
	}
	row := "archived"
	if p.Row != nil {
		row = *p.Row
	}
	fmt.Fprintf(out, "row %d of the log is: %s\nby the hashes", p.Index, terminal.Text(row))
	for _, h := range p.Hashes {
		fmt.Fprintf(out, " %x", h)
	}
	_, err := fmt.Fprintf(out, "\nand the checkpoint\n%s", p.Checkpoint)
	return err
}

// Follow returns a function to pass to tlog.Follow. It calls print for each new row that the filter
// selects. It ignores f.After, f.Before and f.Limit, and skips a row if its text no longer exists.
func (f *Filter) Follow(print func(Row) error) func(tlog.Logged) error {
	return func(l tlog.Logged) error {
		if l.Row == nil {
			return nil // archived already
		}
		r, err := Parse(json.RawMessage(*l.Row))
		if err != nil || !f.match(r.Row) {
			return err
		}
		return print(r)
	}
}
