package main

import (
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
)

func newWhoisCmd(m *instance) *cobra.Command {
	var socket, to string
	var udp bool
	var show terminal.Show
	cmd := &cobra.Command{
		Use:   "whois ADDRESS",
		Short: "Show the caller of a connection to a service",
		Long: `Show who is at the other end of a connection to a service on this host. ADDRESS is the address
from which the service sees the connection come. The command prints the SPIFFE ID of the caller.
Root may ask about every service of the host, and the account of a service about its own
services.`,
		Example: "  # Show who connected to a service on this host from this port.\n  flor whois 127.0.0.1:43210",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := whois.Query{}
			var err error
			if q.From, err = netip.ParseAddrPort(args[0]); err != nil {
				return fmt.Errorf("address %q, want that which the connection comes from: 127.0.0.1:43210", args[0])
			}
			if to != "" {
				if q.To, err = netip.ParseAddrPort(to); err != nil {
					return fmt.Errorf("--to %q, want the address that the service listens on: 127.0.0.1:8080", to)
				}
			}
			if udp {
				q.Protocol = document.UDP
			}
			answer, err := whois.Fetch(cmd.Context(), socket, q)
			if err != nil {
				return err
			}
			return show(answer, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s\n", answer.Caller)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "path of the Unix `SOCKET` of the forwarder for this command, whois.sock")
	m.follow(cmd, "socket", func(m hostdir.Instance) string { return whois.Beside(m.Agent()) })
	cmd.Flags().StringVar(&to, "to", "", "`ADDRESS` at which the service listens; needed if several connections come from one port")
	cmd.Flags().BoolVar(&udp, "udp", false, "look for a service over UDP")
	show = terminal.Shown(cmd, "print a JSON object with the SPIFFE IDs of the caller and of the service, and with both addresses")
	return cmd
}
