package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/client"
)

func newRotateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate HOST NEED [FLAKE]",
		Short: "Have a host request another secret for a need",
		Long: `Order of a host that it requests another secret for a need: it does with the answer to
its next report, within five minutes, and the former secret ends, that of a client of the
issuer a quarter of an hour later. florctl status has the needs of hosts.`,
	}
	cluster := ofCluster(cmd)
	cmd.Args = words(2, 3)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := cluster(cmd.Context(), args[2:])
		if err != nil {
			return err
		}
		if _, ok := p.topology.Hosts[args[0]]; !ok {
			return fmt.Errorf("cluster %s has no host %q", p.topology.Name, args[0])
		}
		// A host reports to the first that it reaches.
		return p.providers.First(func(at *client.Provider) error {
			report, err := at.Rotate(cmd.Context(), args[0], args[1])
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), report)
			}
			return err
		})
	}
	return cmd
}
