package main

import (
	"fmt"
	"net"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"

	"florete"
	"florete/agent"
	"florete/agent/hostapi"
	agentstatus "florete/agent/status"
)

func newHostCmd() *cobra.Command {
	parent := &cobra.Command{Use: "host", Short: "The host's own API"}
	var c hostapi.Config
	var socket string
	run := &cobra.Command{
		Use:   "run",
		Short: "Answer about this host on a Unix socket, for a service that publishes it",
		Long: `Answer about this host until told to stop: its manifest, status and journals, and
requests to fetch a need again. Who may ask is the forwarder's to decide: publish the
socket as a service. systemd may pass the socket.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ln, err := listen(socket)
			if err != nil {
				return err
			}
			return hostapi.Serve(cmd.Context(), ln, c)
		},
	}
	f := run.Flags()
	f.StringVar((*string)(&c.Layout), "state", string(florete.DefaultLayout), "directory that flor activate keeps")
	f.StringVar(&c.Agent, "agent", agent.DefaultSocket, "Unix socket of the agent")
	f.StringVar(&c.Rotate, "rotate", defaultRotate, "directory that flor activate --rotate watches")
	f.StringVar(&socket, "socket", "/run/florete-host.sock", "Unix socket to answer on, unless systemd passes one")
	parent.AddCommand(run, newRotateCmd())
	return parent
}

// listen takes the socket that systemd passes, or binds it.
func listen(socket string) (net.Listener, error) {
	passed, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("sockets from systemd: %w", err)
	}
	switch len(passed) {
	case 0:
		return agentstatus.Listen(socket)
	case 1:
		return passed[0], nil
	}
	return nil, fmt.Errorf("sockets from systemd: %d, want 1", len(passed))
}
