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
	parent := &cobra.Command{Use: "agent", Short: "The forwarder"}
	var c forward.Config
	run := &cobra.Command{
		Use:   "run",
		Short: "Carry connections between local processes and services of the cluster",
		Long: `Run the forwarder until it is stopped (SIGTERM, SIGINT). It waits for the
manifest and the node's certificate that flor activate delivers, follows every
later change of them, and lets live connections end for 2 seconds when stopping.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if c.Starter, err = handover.Started(); err != nil {
				return err
			}
			if c.Starter == nil { // else the process that runs has the directory, or this one must fail
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
		Short: "Start a forwarder that takes over from the one that runs",
		Long: `Start flor agent run with the same flags, of this very program, and have it
take all new connections over from the process that runs. That one carries those
it has until they end, or for ten minutes (hosts.<name>.drain). It is what
ExecReload= of the unit runs. Where it fails, nothing has changed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			args := slices.Clone(os.Args[1:])
			args[slices.Index(args, cmd.Name())] = run.Name()
			return handover.Reload(cmd.Context(), args)
		},
	}
	for _, cmd := range []*cobra.Command{run, reload} {
		m.state(cmd, &c.Layout)
		cmd.Flags().StringVar(&c.Socket, "socket", "", "Unix socket for flor status")
		m.follow(cmd, "socket", hostdir.Instance.Agent)
		cmd.Flags().StringVar(&c.Metrics, "metrics", "", "loopback `ADDRESS`, such as 127.0.0.1:9464, where every account of the host may read the metrics too")
		cmd.Flags().StringVar(&c.Traces, "traces", "", "`URL` of a collector of OpenTelemetry traces over OTLP/HTTP, such as http://127.0.0.1:4318")
		cmd.Flags().IntVar(&c.OneTraceIn, "one-trace-in", 100, "send one trace in `N`; hosts with the same number send the same ones")
		parent.AddCommand(cmd)
	}
	return parent
}
