package main

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/confirm"
	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/hostdir"
)

// exitWentBack is the exit status of flor sync if it undid the change.
const exitWentBack exit = 2

// syncer holds the settings and the state of one run of flor sync, which applies new documents to
// the host.
type syncer struct {
	*instance
	confirm.Host
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
		Short: "Try the newest documents, and go back unless somebody confirms",
		Long: `Try the newest documents on this host, and go back to the previous documents unless somebody
confirms. The command fetches the documents from a provider, prints what they change, and puts
them in force at once. If nobody confirms within --confirm-timeout, the host goes back, even
without a network or after a reboot. Confirm from a new login, which proves that the host can
still be reached:

    flor sync --confirm ID

Normally, flor activate puts published documents in force by itself. To make flor activate wait
for flor sync, run this command before you publish:

    flor sync --hold 1h    # then publish, flor sync --dry-run, flor sync

Exit status: 0 if the documents are in force or confirmed, or change nothing; 1 after an error,
and nothing changed unless a change ID was printed; 2 if the host went back
(--confirm-when-healthy).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			syscall.Umask(0o022) // other accounts read the documents
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
	f.StringVar(&s.HostKey, "ssh-host-key", activation.DefaultHostKey, "`FILE` that contains the SSH host key of this host")
	f.StringVar(&s.TPM, "tpm", devicekey.DefaultTPM, "`DEVICE` of the TPM that holds the device key, or a Unix socket to a TPM")
	f.StringVar(&s.socket, "agent-socket", "", "path of the Unix `SOCKET` of the forwarder, for --confirm-when-healthy")
	m.follow(cmd, "agent-socket", hostdir.Instance.Agent)
	f.DurationVar(&s.timeout, "confirm-timeout", 5*time.Minute, "time to wait for a confirmation before the host goes back")
	f.DurationVar(&s.hold, "hold", 0, "time for which flor activate leaves published documents to flor sync; 0 ends this")
	f.StringVar(&s.confirm, "confirm", "", "keep the documents or the system that were put in force with this change `ID`")
	f.BoolVar(&s.healthy, "confirm-when-healthy", false, "confirm when needs are fulfilled, units run and a provider answers over a new connection")
	f.BoolVar(&s.dryRun, "dry-run", false, "print what would change, and change nothing")
	f.BoolVar(&s.json, "json", false, "print the result as a JSON object")
	cmd.MarkFlagsMutuallyExclusive("confirm", "confirm-when-healthy")
	f.BoolVar(&s.system, "system", false, "switch to the NixOS system that the newest documents name, and back to the previous one unless confirmed")
	cmd.MarkFlagsMutuallyExclusive("confirm", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("system", "confirm")
	cmd.MarkFlagsMutuallyExclusive("system", "confirm-when-healthy")
	for _, other := range []string{"confirm", "confirm-when-healthy", "dry-run", "system"} {
		cmd.MarkFlagsMutuallyExclusive("hold", other)
	}
	cmd.AddCommand(newArmCmd(m), newRollbackCmd(m))
	return cmd
}

// looking is the time for which activation does not change the documents while flor sync runs. In
// this time a user reads the changes, so that flor sync applies exactly the documents whose changes
// it has shown.
const looking = time.Minute

func (s *syncer) run(ctx context.Context) error {
	if !s.dryRun {
		began, err := documents.Hold(s.State, looking)
		if err != nil {
			return err
		}
		if began {
			defer func() { _, _ = documents.Hold(s.State, 0) }() // the hold also expires on its own
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
		result.Change = c
		s.printChange(result)
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
	if err := confirm.Confirm(s.State, s.confirm); err != nil {
		return err
	}
	return s.printConfirmed(s.confirm)
}
