package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/ping"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
)

func newPingCmd(m *instance) *cobra.Command {
	var c ping.Config
	var show terminal.Show
	cmd := &cobra.Command{
		Use:   "ping SERVICE",
		Short: "Check whether this account reaches a service",
		Long: `Check whether the account that runs this command reaches a service. If it does not, the command
prints the step at which the connection fails, with a remedy. The steps lead from the name of
the service through the forwarders on both hosts to the service itself.

The service receives a connection that ends at once without data. A service over UDP receives
nothing.

Exit status: 0 if the service is reached; 1 if the command was called in a wrong way or there is
no forwarder; 2 if a step failed.`,
		Example: "  # Check the service wiki.\n  flor ping wiki\n  # Check a service by the name that programs use.\n  flor ping host.ursula.demo.flor.rete",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := ping.Run(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			err = show(r, func(w io.Writer) error { return ping.Print(w, r) })
			if _, broken := r.Broken(); err == nil && broken {
				err = exitFindings
			}
			return err
		},
	}
	cmd.Flags().StringVar(&c.Socket, "socket", "", "path of the Unix `SOCKET` of the forwarder for this command, ping.sock")
	m.follow(cmd, "socket", func(m hostdir.Instance) string { return ping.Beside(m.Agent()) })
	show = terminal.Shown(cmd, "print the steps and their results as a JSON object")
	return cmd
}
