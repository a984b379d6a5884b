package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward"
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
		RunE: func(cmd *cobra.Command, _ []string) error { return forward.Run(cmd.Context(), c) },
	}
	m.state(run, &c.Layout)
	run.Flags().StringVar(&c.Socket, "socket", "", "Unix socket for flor status")
	m.follow(run, "socket", florete.Instance.Agent)
	parent.AddCommand(run)
	return parent
}
