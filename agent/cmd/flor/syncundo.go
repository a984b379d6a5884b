package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/activation/confirm"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
)

func newArmCmd(m *instance) *cobra.Command {
	n := confirm.Installation{}
	var timeout time.Duration
	var show terminal.Show
	cmd := &cobra.Command{
		Use:   "arm DIR [ACTION]",
		Short: "Prepare to go back from a NixOS system or a bundle",
		Long: `Prepare this host to go back to its current NixOS system or bundle. Run this command before you
put another system, or an unpacked bundle, in force. DIR is the directory of the new system or
bundle. For a NixOS system, ACTION is the action of switch-to-configuration.

If nobody confirms within --confirm-timeout, the host goes back. The command prints the ID for
the confirmation, or nothing if nothing would change:

    flor sync --confirm ID`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			syscall.Umask(0o022)
			n.Instance, n.Dir, n.Action = m.Instance, args[0], "switch"
			if len(args) == 2 {
				n.Action = args[1]
			}
			n.Arm = func(ctx context.Context) error { return startUndo(ctx, m.Instance, n.State) }
			c, err := n.Begin(cmd.Context(), timeout)
			if c == nil || err != nil {
				return err
			}
			return show(c, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "Goes back on %s; to keep it, from a new login: %s sync --confirm %s\n",
					c.Deadline.UTC().Format(time.DateTime+" MST"), m.Program("flor"), c.ID)
				return err
			})
		},
	}
	m.state(cmd, &n.State)
	cmd.Flags().DurationVar(&timeout, "confirm-timeout", 5*time.Minute, "time to wait for a confirmation before the host goes back")
	show = terminal.Shown(cmd, "print the pending change as a JSON object, with its ID and its deadline")
	return cmd
}

func newRollbackCmd(m *instance) *cobra.Command {
	var state hostdir.Layout
	var system bool
	cmd := &cobra.Command{
		Use:   "rollback",
		Short: "Wait for a confirmation, and go back without one",
		Long: `Wait until somebody confirms the pending change of this host, and go back at the deadline if
nobody does. systemd runs this command as florete-rollback.service before a change is put in
force. You need not run it yourself.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			syscall.Umask(0o022)
			if system {
				return confirm.SuperviseSystem(cmd.Context(), state, notifyReady)
			}
			arm := func(ctx context.Context) error { return startUndo(ctx, m.Instance, state) }
			return confirm.Supervise(cmd.Context(), state, arm, notifyReady)
		},
	}
	m.state(cmd, &state)
	cmd.Flags().BoolVar(&system, "system", false, "go back from a NixOS system or a bundle, in this process")
	return cmd
}

// startUndo starts the systemd service that undoes a change of the system or bundle if the change
// is not confirmed. The service runs this program by its resolved path, so that a later change of
// symbolic links does not affect it.
func startUndo(ctx context.Context, m hostdir.Instance, state hostdir.Layout) error {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return err
	}
	// The unit's name must not begin with florete-, because an installation stops and removes such
	// units.
	return units.StartTransient(ctx, "undo-"+m.String()+".service", "Go back from an installation unless it is confirmed",
		[]string{self, "--instance=" + string(m), "sync", "rollback", "--system", "--state=" + string(state)})
}
