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
		Short: "Check whether this account reaches a service",
		Long: `Check, step by step, what a connection of this account to a service does: its name, the local
listener, the identity of the account, the forwarder that publishes the service, both identities,
and the upstream. A step that fails is printed with its remedy. The service receives a connection
without a byte, which ends at once; over UDP it receives nothing.

Exit status: 0 the service is reached; 1 usage, or no agent; 2 a step failed.`,
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
	cmd.Flags().StringVar(&c.Socket, "socket", "", "Unix `SOCKET` of the agent for this command, ping.sock")
	m.follow(cmd, "socket", func(m hostdir.Instance) string { return ping.Beside(m.Agent()) })
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
