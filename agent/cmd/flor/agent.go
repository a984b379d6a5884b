package main

import (
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/confine"
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
		Long: `Run the forwarder, which carries connections between local processes and services of the cluster,
until it is stopped. It waits for the manifest and the node's certificate that flor activate
delivers, and follows every later change. When it is stopped with SIGTERM or SIGINT, connections
have two seconds to end.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if c.Starter, err = handover.Started(); err != nil {
				return err
			}
			if c.Starter == nil { // otherwise the running process holds the directory, or this process must fail
				if err := confine.Await(cmd.Context(), c.Layout, slog.Default()); err != nil {
					return nil // stopped
				}
			}
			c.Unconfined = confine.Agent(c.Layout, c.Socket)
			go forward.AdaptProcessors(cmd.Context())
			return forward.Run(cmd.Context(), c)
		},
	}
	reload := &cobra.Command{
		Use:   "reload",
		Short: "Replace the forwarder without closing connections",
		Long: `Start a new forwarder with the same flags from the installed program, and let it take over all new
connections. The former process carries its connections until they end, for at most ten minutes
(hosts.<name>.drainTimeout). ExecReload= of the unit runs this command. If it fails, nothing has changed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			args := slices.Clone(os.Args[1:])
			args[slices.Index(args, cmd.Name())] = run.Name()
			return handover.Reload(cmd.Context(), args)
		},
	}
	for _, cmd := range []*cobra.Command{run, reload} {
		m.state(cmd, &c.Layout)
		cmd.Flags().StringVar(&c.Socket, "socket", "", "Unix `SOCKET` for flor status")
		m.follow(cmd, "socket", hostdir.Instance.Agent)
		cmd.Flags().StringVar(&c.Metrics, "metrics", "", "also serve the metrics to every account of the host, on a loopback `ADDRESS` such as 127.0.0.1:9464")
		cmd.Flags().StringVar(&c.Traces, "traces", "", "send OpenTelemetry traces over OTLP/HTTP to the collector at this `URL`, such as http://127.0.0.1:4318")
		cmd.Flags().IntVar(&c.OneTraceIn, "one-trace-in", 100, "send one trace in `N`; hosts with the same number choose the same traces")
		parent.AddCommand(cmd)
	}
	return parent
}
