package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/ping"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
)

func newPingCmd(m *instance) *cobra.Command {
	var c ping.Config
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ping SERVICE",
		Short: "Find out whether this account reaches a service, and what is in the way",
		Long: `Do what a connection of this account to a service does, step by step: its name, the
local listener, the identity that the account acts under, the forwarder that publishes
the service, the identities of both, the upstream. The service gets a connection without
a byte, which ends at once; over UDP, nothing.

Exit status: 0 it is reached; 1 usage, or no agent; 2 a step is broken.`,
		Example: "  flor ping wiki\n  flor ping host.ursula.demo.flor.rete",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := ping.Run(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				err = terminal.PrintJSON(cmd.OutOrStdout(), r)
			} else {
				err = ping.Print(cmd.OutOrStdout(), r)
			}
			if _, broken := r.Broken(); err == nil && broken {
				err = exitFindings
			}
			return err
		},
	}
	cmd.Flags().StringVar(&c.Socket, "socket", "", "Unix socket of the agent for this command, ping.sock")
	m.follow(cmd, "socket", func(m hostdir.Instance) string { return ping.Beside(m.Agent()) })
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
