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
		Short: "Replace a secret of a host",
		Long: `Replace the secret that a host has for one of its needs, such as the secret of an OIDC client.
The command orders the host to request another secret. The host does so with its next report,
within five minutes. NEED is a name that flor status prints on the host.

The old secret of an OIDC client stays valid for another 15 minutes, or for an hour if the
issuer is external. For a kind of need of your own, your program decides. Other kinds of need
cannot be rotated this way. A rotation cannot be undone.`,
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
