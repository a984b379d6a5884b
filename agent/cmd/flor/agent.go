package main

import (
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/internal/hostdir"
)

func newAgentCmd(m *instance) *cobra.Command {
	parent := &cobra.Command{Use: "agent", Short: "Run or replace the forwarder"}
	var c forward.Config
	run := &cobra.Command{
		Use:   "run",
		Short: "Run the forwarder",
		Long: `Run the forwarder of this host, which carries connections between local programs and services of
the cluster. systemd runs this command. The forwarder starts as soon as flor activate has
delivered the manifest and the certificate of the host, and follows later changes of these
files. On SIGTERM or SIGINT, it gives its connections two seconds to end.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if c.Starter, err = handover.Started(); err != nil {
				return err
			}
			if c.Starter == nil { // otherwise the running process holds the directory, or this one must fail
				if err := forward.AwaitState(cmd.Context(), c.Layout, slog.Default()); err != nil {
					return nil // the service was stopped
				}
			}
			c.Unconfined = forward.Confine(c.Layout, c.Socket)
			go forward.AdaptProcessors(cmd.Context())
			return forward.Run(cmd.Context(), c)
		},
	}
	reload := &cobra.Command{
		Use:   "reload",
		Short: "Replace the forwarder without closing connections",
		Long: `Replace the running forwarder of this host without closing connections, for example after an
upgrade. systemd runs this command for ExecReload= of the unit. A new forwarder, with the same
flags, takes over all new connections. The old forwarder carries its connections until they end,
for at most ten minutes (hosts.<name>.drainTimeout). If the command fails, nothing changes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			args := slices.Clone(os.Args[1:])
			args[slices.Index(args, cmd.Name())] = run.Name()
			return handover.Reload(cmd.Context(), args)
		},
	}
	for _, cmd := range []*cobra.Command{run, reload} {
		m.state(cmd, &c.Layout)
		cmd.Flags().StringVar(&c.Socket, "socket", "", "path of the Unix `SOCKET` on which the forwarder answers flor status")
		m.follow(cmd, "socket", hostdir.Instance.Agent)
		cmd.Flags().StringVar(&c.Metrics, "metrics", "", "loopback `ADDRESS`, such as 127.0.0.1:9464, on which the forwarder also serves metrics to every account of the host")
		cmd.Flags().StringVar(&c.Traces, "traces", "", "`URL` of the collector to send OpenTelemetry traces to over OTLP/HTTP, such as http://127.0.0.1:4318")
		cmd.Flags().IntVar(&c.OneTraceIn, "one-trace-in", 100, "send one trace in `N`; hosts with the same number choose the same traces")
		parent.AddCommand(cmd)
	}
	return parent
}
