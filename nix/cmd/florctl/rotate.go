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
		Long: `Replace a secret of a host, such as the secret of an OIDC client. NEED is a name that flor
status prints on the host. With its next report, within five minutes, the host requests a new
secret. You cannot undo a rotation.

The old secret of an OIDC client stays valid for another 15 minutes, or for an hour if the
issuer is external. If you wrote the provider of the need yourself, your program decides how
long the old secret stays valid. Other kinds of need cannot be rotated.`,
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
