package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/authority"
	"github.com/florete/florete/nix/operator/scaffold"
)

func newInitCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Create a cluster without hosts",
		Long: `Create the flake of a cluster in a new or empty directory, and commit it. Create its keys in
another directory: ca.key, which signs issuing certificates, and signing.key, which signs
documents. Keys that exist are used. To undo it, remove both directories. The next step is
florctl host add.`,
		Args: words(1, 1),
	}
	var c scaffold.Cluster
	f := cmd.Flags()
	f.StringVar(&c.Name, "name", "", "`NAME` of the cluster (default: that of the directory)")
	f.StringVar(&c.TrustDomain, "trust-domain", "", "`NAME` of the trust domain (default: that of the cluster, with .flor)")
	f.StringVar(&c.Florete, "florete", "github:florete/florete", "`FLAKE` of Florete to use")
	keys := f.String("keys", "", "`DIR` of the keys (default: ~/.local/share/florete/NAME)")
	how := authority.RootKeyFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir, keys, err := scaffold.Init(cmd.Context(), &c, args[0], *keys, how)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), `%s: cluster %s, committed
%s: its keys: keep ca.key offline, signing.key publishes; nobody can make them again

Next:
  cd %s
  florctl host add NAME ADDRESS
`, dir, c.Name, keys, args[0])
		return nil
	}
	return cmd
}
