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
		Short: "Create the flake and the keys of a new cluster",
		Long: `Create a new cluster. Run this command once, on your own machine.

The command writes the flake that describes the cluster to DIR, a new or empty directory, and
commits it with git. It also creates two keys in another directory (--keys): ca.key signs the
certificates of provider hosts, and signing.key signs the documents of hosts. Keys that already
exist in that directory are used and not replaced.

The new cluster has no hosts. To add the first one, run florctl host add. To undo the command,
remove both directories.`,
		Args: words(1, 1),
	}
	var c scaffold.Cluster
	f := cmd.Flags()
	f.StringVar(&c.Name, "name", "", "`NAME` of the new cluster (default: the name of DIR)")
	f.StringVar(&c.TrustDomain, "trust-domain", "", "`NAME` of the trust domain, which begins every identity, such as demo.flor (default: the name of the cluster with .flor)")
	f.StringVar(&c.Florete, "florete", "github:florete/florete", "reference of the `FLAKE` of Florete that the new cluster uses")
	keys := f.String("keys", "", "`DIR` in which to keep the keys (default: ~/.local/share/florete/NAME)")
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
