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
		Short: "Fetch and renew certificates and secrets of this host",
		Long: `Fetch the certificates and secrets of this host from providers, deliver them to programs, and
renew them before they expire. systemd runs this command on every host. It runs until it is
stopped, and prints a line to standard error for each event. With --once, it requests each due
certificate or secret once, and ends.

Exit status:

  0   all needs are fulfilled, or the command was stopped
  1   the command or the configuration is wrong
  2   a provider denies a need, or a need is invalid
  3   some need is still waiting (--once)`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Other accounts read the activation state. Each file has its own mode, so the umask of
			// the caller must not restrict it.
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
	f.StringVar(&c.Closure, "closure", "", "`DIR` that contains the documents of this host (default: the documents accepted before)")
	m.state(cmd, &c.State)
	f.StringVar(&c.HostKey, "ssh-host-key", activation.DefaultHostKey, "`FILE` that contains the SSH host key of this host")
	f.StringVar(&c.TPM, "tpm", devicekey.DefaultTPM, "`DEVICE` of the TPM that holds the device key, or a Unix socket to a TPM")
	f.StringVar(&c.Owner, "owner", "", "Unix `ACCOUNT` of the forwarder, which owns the certificates that are for no other account")
	f.BoolVar(&c.Undivided, "undivided", false, "give all files to the account that runs this command, which then need not be root")
	f.StringToStringVar(&c.Adopt, "adopt", nil, "fulfil a need from existing files without a request, as `NEED=DIR`; may be repeated")
	f.StringVar(&c.Refetch, "refetch", "", "`DIR` to watch; if a file there is named after a need, the need is requested again")
	m.follow(cmd, "refetch", hostdir.Instance.Refetch)
	f.StringVar(&socket, "agent-socket", "", "path of the Unix `SOCKET` of the forwarder, for the reports of this host")
	m.follow(cmd, "agent-socket", hostdir.Instance.Agent)
	f.StringVar(&hook, "hook", "", "`PROGRAM` to call for each unit to restart, instead of systemd")
	f.BoolVar(&c.Once, "once", false, "request every need that is due once, and end")
	f.DurationVar(&c.ConfirmTimeout, "confirm-timeout", activation.ConfirmTimeout, "time in which a provider must be reached with new documents from the network, before the host goes back")
	f.BoolVar(&asJSON, "json", false, "print each event to standard output, as a JSON object on a line of its own")
	f.DurationVar(&c.Backoff.Initial, "backoff-initial", time.Second, "longest wait after the first failed request")
	f.DurationVar(&c.Backoff.Max, "backoff-max", 5*time.Minute, "longest wait after any failed request")
	return cmd
}

func activate(ctx context.Context, c activation.Config) error {
	if c.Backoff.Initial <= 0 || c.Backoff.Max < c.Backoff.Initial {
		return fmt.Errorf("--backoff-initial %s, --backoff-max %s: want 0 < initial <= max", c.Backoff.Initial, c.Backoff.Max)
	}
	if c.ConfirmTimeout < time.Second {
		return fmt.Errorf("--confirm-timeout %s: want at least 1s", c.ConfirmTimeout)
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

// runWatchingClock runs activation until ctx ends. Activation tries failed requests again at once
// when the system clock is set, because a wrong clock makes certificates invalid.
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

// printEvents returns a function that prints the events of activation. With asJSON the events are
// written to stdout as JSON, otherwise to stderr as lines for people.
func printEvents(stdout, stderr io.Writer, asJSON bool) func(event.Event) {
	return func(e event.Event) {
		if asJSON {
			_, _ = stdout.Write(e.JSON())
			return
		}
		fmt.Fprintf(stderr, "%s%s\n", journal.Prefix(stderr, e.Level()), e)
	}
}

// notifySystemd tells systemd that activation is ready because the documents are verified. The
// message includes the status of the needs, which systemctl status shows.
func notifySystemd(s event.Summary) {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS="+s.Line()); err != nil {
		slog.Warn("systemd is not notified", "err", err)
	}
}
