package auditview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/providers/tlog"
)

// A Mode is an option of a command that prints audit rows. It makes the command verify
// tamper-evident logs, follow them, or prove that they contain a row, instead of printing rows.
type Mode struct {
	Verify, Follow bool
	Proof          string

	// Kept is a time. A log that is verified must have all of its rows since that time. If Kept is
	// zero, it is the source of the log that says which rows must exist.
	Kept time.Time
}

// Modes adds a flag for each mode to a command.
func Modes(cmd *cobra.Command) *Mode {
	m := &Mode{}
	cmd.Flags().BoolVar(&m.Verify, "verify", false, "compute the tamper-evident log again from the rows, and compare it with the checkpoint of the provider")
	cmd.Flags().BoolVar(&m.Follow, "follow", false, "print new rows as they are appended, until interrupted")
	cmd.Flags().StringVar(&m.Proof, "proof", "", "prove that the tamper-evident log contains a row; `ROW` is the time of the row, as --json prints it")
	cmd.MarkFlagsMutuallyExclusive("verify", "follow", "proof")
	for _, name := range []string{"verify", "follow", "proof"} {
		for _, of := range []string{"after", "before", "limit"} {
			cmd.MarkFlagsMutuallyExclusive(name, of)
		}
	}
	return m
}

// Any reports whether a mode is set.
func (m *Mode) Any() bool { return m.Verify || m.Follow || m.Proof != "" }

// Run carries out the selected operation on logs.
func (m *Mode) Run(cmd *cobra.Command, logs []tlog.Source, f *Filter, asJSON bool) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	switch {
	case m.Verify:
		return verify(ctx, out, logs, m.Kept, asJSON)
	case m.Proof != "":
		p, err := prove(ctx, logs, m.Proof)
		if err != nil {
			return unlogged(err)
		}
		return PrintProof(out, p, asJSON)
	}
	return follow(cmd, logs, f, asJSON)
}

// follow prints rows as they are appended to logs. If a log cannot be followed, follow names it at
// once and continues with the others.
func follow(cmd *cobra.Command, logs []tlog.Source, f *Filter, asJSON bool) error {
	var one sync.Mutex
	print := f.Follow(func(r Row) error {
		one.Lock()
		defer one.Unlock()
		p := printer{out: cmd.OutOrStdout(), headed: true} // rows come one by one
		if asJSON {
			return p.json(r)
		}
		return errors.Join(p.add(r), p.flush())
	})
	var failed []error
	var all sync.WaitGroup
	for _, l := range logs {
		all.Go(func() {
			err := unlogged(tlog.Follow(cmd.Context(), l, print))
			one.Lock()
			defer one.Unlock()
			if err == nil {
				return
			}
			if failed = append(failed, err); len(failed) < len(logs) {
				fmt.Fprintln(terminal.Writer(cmd.ErrOrStderr()), "warning:", err)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// verify prints the verdict for each log that can be read, and returns the errors of the others.
func verify(ctx context.Context, out io.Writer, logs []tlog.Source, kept time.Time, asJSON bool) error {
	var all []tlog.Verdict
	var failed []error
	for _, l := range logs {
		v, err := tlog.Verify(ctx, l, kept)
		if err != nil {
			failed = append(failed, unlogged(err))
			continue
		}
		all = append(all, v)
	}
	if len(all) > 0 {
		failed = append(failed, PrintVerdicts(out, all, asJSON))
	}
	return errors.Join(failed...)
}

// prove returns the proof that one of the logs contains a row. If no log contains the row, the
// error names the logs that cannot be read.
func prove(ctx context.Context, logs []tlog.Source, row string) (tlog.Proof, error) {
	var failed []error
	for _, l := range logs {
		p, err := l.Proof(ctx, row)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, tlog.ErrNoRow) {
			failed = append(failed, err)
		}
	}
	if len(failed) == 0 {
		return tlog.Proof{}, fmt.Errorf("%.100q: %w", row, tlog.ErrNoRow)
	}
	return tlog.Proof{}, errors.Join(failed...)
}

// unlogged returns the error for a tamper-evident log that does not exist yet.
func unlogged(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no tamper-evident log yet: it begins within seconds after the provider's process: flor-provider run")
	}
	return err
}
