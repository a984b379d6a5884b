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
		Short: "Rotate a secret of a host",
		Long: `Order a host to request another secret for one of its needs. It does so with its next report,
within five minutes. The old secret of an OIDC client stays valid for another 15 minutes, and at an
external issuer for an hour. For a kind of your own, its program decides. Other kinds cannot be
rotated this way. A rotation cannot be undone. flor status on the host prints its needs.`,
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
