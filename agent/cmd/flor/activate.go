package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/coreos/go-systemd/v22/util"
	"github.com/spf13/cobra"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/devicekey"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/agent/report"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
)

func newActivateCmd(m *instance) *cobra.Command {
	var c activation.Config
	var hook, socket string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "activate",
		Short: "Fetch what this host needs, and renew it",
		Long: `Fetch what this host needs from its providers, deliver it, and renew it before it expires. The
command runs until it is stopped, and prints a line to standard error for each event. With --once
it requests every need that is due once, and ends.

Exit status: 0 all needs are fulfilled; 1 usage or configuration; 2 something is denied or invalid;
3 (--once) something is still waiting. Being stopped while waiting is no failure.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The state is read by other accounts; each file has its own mode.
			syscall.Umask(0o022)
			c.Notify = activation.NewNotifier(hook)
			if hook == "" && util.IsRunningSystemd() {
				c.Arm = func(ctx context.Context) error { return units.Start(ctx, m.Unit("rollback.service")) }
			}
			c.Report = printEvents(cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
			c.Status = notifySystemd
			reports := report.Collector{Config: report.Config{Instance: m.Instance, Layout: c.State, Socket: socket, Declared: report.Declared}}
			c.HostReport = reports.Collect
			return activate(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Closure, "closure", "", "`DIR` of this host's documents (default: the documents accepted before)")
	m.state(cmd, &c.State)
	f.StringVar(&c.HostKey, "ssh-host-key", activation.DefaultHostKey, "`FILE` of the SSH host key that proves this host at enrolment")
	f.StringVar(&c.TPM, "tpm", devicekey.DefaultTPM, "`DEVICE` of the TPM that holds the device key, or a Unix socket to one")
	f.StringVar(&c.Owner, "owner", "", "`ACCOUNT` of the forwarder, which owns the certificates that are for no other account")
	f.BoolVar(&c.Undivided, "undivided", false, "leave all files to the account that runs this command, which needs no root then")
	f.StringToStringVar(&c.Adopt, "adopt", nil, "fulfil a need from existing files, as `NEED=DIR`, without a request; may be repeated")
	f.StringVar(&c.Refetch, "refetch", "", "`DIR` in which touching a file named after a need requests it again")
	m.follow(cmd, "refetch", hostdir.Instance.Refetch)
	f.StringVar(&socket, "agent-socket", "", "Unix `SOCKET` of the agent, for the reports of this host")
	m.follow(cmd, "agent-socket", hostdir.Instance.Agent)
	f.StringVar(&hook, "hook", "", "`PROGRAM` to call with each unit to restart, instead of systemd")
	f.BoolVar(&c.Once, "once", false, "make one pass, and end")
	f.DurationVar(&c.CommitTimeout, "commit-timeout", activation.CommitTimeout, "roll back documents from the network if no provider can be reached within this time")
	f.BoolVar(&asJSON, "json", false, "print events as JSON lines to standard output")
	f.DurationVar(&c.Backoff.Initial, "backoff-initial", time.Second, "longest wait after the first failure")
	f.DurationVar(&c.Backoff.Max, "backoff-max", 5*time.Minute, "longest wait after any failure")
	return cmd
}

func activate(ctx context.Context, c activation.Config) error {
	if c.Backoff.Initial <= 0 || c.Backoff.Max < c.Backoff.Initial {
		return fmt.Errorf("--backoff-initial %s, --backoff-max %s: want 0 < initial <= max", c.Backoff.Initial, c.Backoff.Max)
	}
	if c.CommitTimeout < time.Second {
		return fmt.Errorf("--commit-timeout %s: want at least 1s", c.CommitTimeout)
	}
	s, err := runWatchingClock(ctx, c)
	if err != nil {
		return err
	}
	code := s.Exit()
	if code == event.ExitWaiting && !c.Once {
		code = event.ExitFulfilled
	}
	if code != event.ExitFulfilled {
		return exit(code)
	}
	return nil
}

// runWatchingClock runs activation, which tries again when the clock is set.
func runWatchingClock(ctx context.Context, c activation.Config) (event.Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	c.ClockChanged = changed
	var watch sync.WaitGroup
	watch.Go(func() {
		if err := activation.WatchClock(ctx, changed); err != nil {
			slog.Warn("the clock is not watched", "err", err)
		}
	})
	defer watch.Wait()
	defer cancel()
	return activation.Run(ctx, c)
}

// printEvents returns a function that writes events, as lines for people to stderr or as JSON to
// stdout.
func printEvents(stdout, stderr io.Writer, asJSON bool) func(event.Event) {
	return func(e event.Event) {
		if asJSON {
			_, _ = stdout.Write(e.JSON())
			return
		}
		fmt.Fprintf(stderr, "%s%s\n", journal.Prefix(stderr, e.Level()), e)
	}
}

// notifySystemd reports to systemd that the documents are verified, with the status of the needs.
func notifySystemd(s event.Summary) {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS="+s.Line()); err != nil {
		slog.Warn("systemd is not notified", "err", err)
	}
}
