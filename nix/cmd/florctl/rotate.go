package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/published"
)

func newRotateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate HOST NEED [FLAKE]",
		Short: "Have a host request another secret for a need",
		Long: `Order of a host that it requests another secret for a need: it does with the answer to
its next report, within five minutes, and the former secret ends, that of a client of the
issuer a quarter of an hour later. florctl status has the needs of hosts.`,
	}
	return onCluster(cmd, 2, func(c published.Cluster, args []string) error {
		if _, ok := c.Topology.Hosts[args[0]]; !ok {
			return fmt.Errorf("cluster %s has no host %q", c.Topology.Name, args[0])
		}
		// A host reports to the first that it reaches.
		return c.Providers.First(func(at *client.Provider) error {
			report, err := at.Rotate(cmd.Context(), args[0], args[1])
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), report)
			}
			return err
		})
	})
}
