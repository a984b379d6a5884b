package main

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/commit"
	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/hostdir"
)

// exitWentBack is the exit status of flor sync if the change was undone.
const exitWentBack exit = 2

// syncer is the state of a flor sync command.
type syncer struct {
	*instance
	commit.Host
	socket  string // status socket of the forwarder
	timeout time.Duration
	hold    time.Duration
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
		Short: "Put the newest documents in force, unless nobody confirms",
		Long: `Fetch the newest documents of this host from a provider, verify them, print what they change, and
put them in force at once. Unless somebody confirms within --commit-timeout, the former documents are
put in force again, even without a network or after a reboot. Confirm from a new login, which proves
that the host can still be reached:

    flor sync --confirm ID

flor activate takes published documents by itself. To make it wait for flor sync, hold it:

    flor sync --hold 1h    # then publish, flor sync --dry-run, flor sync

Exit status: 0 in force, confirmed, or nothing changes; 1 an error, and nothing changed unless a
commit was printed; 2 (--confirm-when-healthy) the host went back.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			syscall.Umask(0o022) // documents are readable for other accounts
			s.out = cmd.OutOrStdout()
			s.Arm = func(ctx context.Context) error { return units.Start(ctx, m.Unit("rollback.service")) }
			switch {
			case s.confirm != "":
				return s.confirmed()
			case cmd.Flags().Changed("hold"):
				return s.held()
			}
			return s.run(cmd.Context())
		},
	}
	m.state(cmd, &s.State)
	f := cmd.Flags()
	f.StringVar(&s.HostKey, "ssh-host-key", activation.DefaultHostKey, "`FILE` of the SSH host key that proves this host at enrolment")
	f.StringVar(&s.TPM, "tpm", devicekey.DefaultTPM, "`DEVICE` of the TPM that holds the device key, or a Unix socket to one")
	f.StringVar(&s.socket, "agent-socket", "", "Unix `SOCKET` of the agent, for --confirm-when-healthy")
	m.follow(cmd, "agent-socket", hostdir.Instance.Agent)
	f.DurationVar(&s.timeout, "commit-timeout", 5*time.Minute, "time to wait for a confirmation before going back")
	f.DurationVar(&s.hold, "hold", 0, "keep published documents waiting for flor sync for this time; 0 ends that")
	f.StringVar(&s.confirm, "confirm", "", "keep the documents or system of the commit `ID`")
	f.BoolVar(&s.healthy, "confirm-when-healthy", false, "confirm once needs are fulfilled, units run and a provider answers over a new connection")
	f.BoolVar(&s.dryRun, "dry-run", false, "print what would change, and change nothing")
	f.BoolVar(&s.json, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("confirm", "confirm-when-healthy")
	f.BoolVar(&s.system, "system", false, "switch to the NixOS system that the newest documents name, and back unless confirmed")
	cmd.MarkFlagsMutuallyExclusive("confirm", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("system", "confirm")
	cmd.MarkFlagsMutuallyExclusive("system", "confirm-when-healthy")
	for _, other := range []string{"confirm", "confirm-when-healthy", "dry-run", "system"} {
		cmd.MarkFlagsMutuallyExclusive("hold", other)
	}
	cmd.AddCommand(newArmCmd(m), newRollbackCmd(m))
	return cmd
}

// looking is the time for which activation makes no changes while flor sync shows and applies
// documents.
const looking = time.Minute

func (s *syncer) run(ctx context.Context) error {
	if !s.dryRun {
		began, err := documents.Hold(s.State, looking)
		if err != nil {
			return err
		}
		if began {
			defer func() { _, _ = documents.Hold(s.State, 0) }() // the hold also expires by itself
		}
	}
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

func (s *syncer) held() error {
	if s.hold < 0 || s.hold > documents.LongestHold {
		return fmt.Errorf("--hold %s: want between 0s and %s", s.hold, documents.LongestHold)
	}
	if _, err := documents.Hold(s.State, s.hold); err != nil || s.json {
		return err
	}
	text := "documents from the network come in force as they are published\n"
	if s.hold > 0 {
		text = fmt.Sprintf("documents from the network wait until %s, or for flor sync\n", time.Now().Add(s.hold).UTC().Format(time.DateTime+" MST"))
	}
	_, err := fmt.Fprint(s.out, text)
	return err
}

func (s *syncer) confirmed() error {
	if err := commit.Confirm(s.State, s.confirm); err != nil {
		return err
	}
	return s.printConfirmed(s.confirm)
}
