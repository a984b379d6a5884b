package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/activation/witness"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
)

// exitFault is the exit status of flor witness if an audit log has a fault.
const exitFault exit = 2

func newWitnessCmd(m *instance) *cobra.Command {
	var state hostdir.Layout
	var dir string
	var now bool
	var show terminal.Show
	cmd := &cobra.Command{
		Use:   "witness",
		Short: "Show the audit logs that this host has seen",
		Long: `Show whether a provider tampered with its audit log. An audit log may only grow. Each host
remembers the newest checkpoint of the logs of its providers, and compares each new checkpoint
with it. The command prints these checkpoints and the faults that the host found. It exits 2 if
there is a fault that nobody accepted.

  flor witness --now                                       check all logs within ten seconds
  flor witness accept PROVIDER KIND --reason "new disk"    accept a log that was replaced`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if now {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return err
				}
				file := filepath.Join(dir, hostdir.WitnessFile)
				if err := os.WriteFile(file, nil, 0o644); err != nil {
					return err
				}
				at := time.Now()
				return os.Chtimes(file, at, at) // the file may exist already
			}
			all, err := state.Witnessed()
			if err != nil {
				return err
			}
			accepted := state.Accepted()
			err = show(logs(all, accepted), func(w io.Writer) error { return printWitnessed(w, all, accepted) })
			if err == nil && len(state.AuditFaults()) > 0 {
				err = exitFault
			}
			return err
		},
	}
	show = terminal.Shown(cmd, "print the audit logs as a JSON list, with the checkpoints that the providers signed")
	cmd.Flags().BoolVar(&now, "now", false, "check all logs within ten seconds")
	m.refetch(cmd, &dir)
	m.state(cmd, &state)
	cmd.AddCommand(newAcceptCmd(m))
	return cmd
}

func newAcceptCmd(m *instance) *cobra.Command {
	var state hostdir.Layout
	var reason string
	cmd := &cobra.Command{
		Use:   "accept PROVIDER KIND --reason TEXT",
		Short: "Accept an audit log that was replaced",
		Long: `Accept a fault that flor witness found in the audit log of a provider, for example after the
provider got a new disk. PROVIDER is the host of the provider, and KIND is its kind of need.
From then on, the host follows the log as it is now. If another fault follows, the host raises
an alarm again. You cannot undo the command.

Your account, the time and the reason are written to the audit log of the config provider.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			syscall.Umask(0o022)
			account, err := nss.Current()
			if err != nil {
				return err
			}
			word := hostdir.AcceptedAudit{At: unixtime.Of(time.Now()), By: account.Username, Reason: reason}
			if by := os.Getenv("SUDO_USER"); by != "" {
				word.By = by + " as " + account.Username
			}
			if err := witness.Accept(state, args[0], args[1], word); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "audit log of kind %s on %s: accepted, and reported\n", args[1], args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that says what you found out about the log")
	cmd.MarkFlagRequired("reason")
	m.state(cmd, &state)
	return cmd
}

// witnessedLog is an audit log as flor witness prints it with --json. It includes the faults of the
// log that an operator has accepted.
type witnessedLog struct {
	hostdir.Witnessed
	Accepted []hostdir.AcceptedAudit `json:"accepted"` // newest last
}

func logs(all []hostdir.Witnessed, accepted []hostdir.AcceptedAudit) []witnessedLog {
	rows := []witnessedLog{}
	for _, x := range all {
		row := witnessedLog{x, []hostdir.AcceptedAudit{}}
		for _, a := range accepted {
			if a.Provider == x.Provider && a.Kind == x.Kind {
				row.Accepted = append(row.Accepted, a)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func printWitnessed(w io.Writer, all []hostdir.Witnessed, accepted []hostdir.AcceptedAudit) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no audit log was witnessed yet: flor witness --now")
		return err
	}
	t := terminal.NewTable(w, "PROVIDER", "KIND", "ROWS", "SEEN", "FAULT")
	for _, x := range all {
		fault := cmp.Or(x.Fault, "-")
		if x.Fault != "" && hostdir.Accepts(accepted, x) {
			fault = "accepted: " + fault
		}
		t.Row(x.Provider, x.Kind, x.Size, x.Seen.UTC().Format(time.RFC3339), fault)
	}
	return t.Flush()
}
