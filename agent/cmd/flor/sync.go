package main

import (
	"context"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete"
	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/commit"
	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/agent/units"
)

// exitWentBack is the exit status of a change that was not confirmed in time.
const exitWentBack exit = 2

// syncer is one flor sync.
type syncer struct {
	*instance
	commit.Host
	socket  string // of the agent
	timeout time.Duration
	confirm string
	dryRun  bool
	healthy bool
	system  bool
	json    bool
	out     io.Writer
}

func newSyncCmd(m *instance) *cobra.Command {
	s := &syncer{instance: m}
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Put the newest documents in force, and go back unless somebody confirms them",
		Long: `Fetch the newest documents of this host from a provider, verify them, print what they
change and put them in force. Unless somebody confirms that within --commit-timeout, the
documents before are in force again, whatever does not work by then, the network or a
reboot included:

    flor sync --confirm ID

proves that the host can be reached, and so wants a login that began after the change.

Exit status: 0 in force, confirmed, or nothing changes; 1 an error, and nothing changed
unless a commit was printed; 2 (--confirm-when-healthy) it went back.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			syscall.Umask(0o022) // documents are for other accounts
			s.out = cmd.OutOrStdout()
			s.Arm = func(ctx context.Context) error { return units.Start(ctx, m.Unit("rollback.service")) }
			if s.confirm != "" {
				return s.confirmed()
			}
			return s.run(cmd.Context())
		},
	}
	m.state(cmd, &s.State)
	f := cmd.Flags()
	f.StringVar(&s.HostKey, "ssh-host-key", activation.DefaultHostKey, "SSH host key that proves this host at enrolment")
	f.StringVar(&s.TPM, "tpm", devicekey.DefaultTPM, "`DEVICE` of the TPM that holds the device key, or a Unix socket to one")
	f.StringVar(&s.socket, "agent-socket", "", "Unix socket of the agent, for --confirm-when-healthy")
	m.follow(cmd, "agent-socket", florete.Instance.Agent)
	f.DurationVar(&s.timeout, "commit-timeout", 5*time.Minute, "how long to wait for a confirmation before going back")
	f.StringVar(&s.confirm, "confirm", "", "keep what the commit `ID` put in force")
	f.BoolVar(&s.healthy, "confirm-when-healthy", false, "confirm when needs are fulfilled, units run and a provider answers over a new connection")
	f.BoolVar(&s.dryRun, "dry-run", false, "print what would change, and change nothing")
	f.BoolVar(&s.json, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("confirm", "confirm-when-healthy")
	f.BoolVar(&s.system, "system", false, "switch to the NixOS system that the newest documents name, and back unless that is confirmed")
	cmd.MarkFlagsMutuallyExclusive("confirm", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("system", "confirm")
	cmd.MarkFlagsMutuallyExclusive("system", "confirm-when-healthy")
	cmd.AddCommand(newArmCmd(m), newRollbackCmd(m))
	return cmd
}

func (s *syncer) run(ctx context.Context) error {
	change, err := s.Fetch(ctx)
	if err != nil {
		return err
	}
	if s.system {
		return s.switchSystem(ctx, change)
	}
	result := synced{Provider: change.Provider}
	if result.Changes, err = changes(change); err != nil {
		return err
	}
	if !change.Changed {
		if result.Undone, err = s.State.Undone(); err != nil {
			return err
		}
	}
	if err := s.printChanges(result, change.Changed); err != nil || !change.Changed || s.dryRun {
		return err
	}
	before := s.troubles(ctx)
	c, err := s.Begin(ctx, change, s.timeout)
	if c != nil {
		result.Commit = c
		s.printCommit(result)
	}
	if err != nil || !s.healthy {
		return err
	}
	return s.confirmWhenHealthy(ctx, change, c.ID, before)
}

func (s *syncer) confirmed() error {
	if err := commit.Confirm(s.State, s.confirm); err != nil {
		return err
	}
	return s.printConfirmed(s.confirm)
}
