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
		Short: "Make a cluster without hosts, and its keys",
		Long: `Make the flake of a cluster in a directory that is empty or not there yet, commit it,
and make the keys outside of it: ca.key, which signs issuing certificates, and signing.key, which
signs documents. Keys that are there already are taken. florctl host add comes next.`,
		Args: words(1, 1),
	}
	var c scaffold.Cluster
	f := cmd.Flags()
	f.StringVar(&c.Name, "name", "", "of the cluster; that of the directory, unless given")
	f.StringVar(&c.TrustDomain, "trust-domain", "", "trust domain; NAME.flor, unless given")
	f.StringVar(&c.Florete, "florete", "github:florete/florete", "`FLAKE` of Florete, which flake.lock pins")
	keys := f.String("keys", "", "directory of the keys; ~/.local/share/florete/NAME, unless given")
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
