package main

import (
	"bytes"
	"cmp"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/rename"
)

func newServiceRenameCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rename OLD NEW",
		Short: "Rename a service without losing its data",
		Long: `Give a service another name in the files of the flake. The command changes the name of the
service and all references to it, and adds the attributes called, by which the service keeps its
databases, accounts at forges, OIDC client, and needs of your own kinds. Secrets stay too.

The command prints the difference, and who must learn the new name: certificates get a new
identity, for example. The change takes effect when you publish or deploy. To undo the command,
restore the files with git.

If the files do not say in a plain way where the service is named, or if something would be
lost, the command changes nothing, and prints what to write by hand.`,
	}
	dir := cmd.Flags().String("flake", ".", "`DIR` that contains the flake of the cluster")
	dryRun := cmd.Flags().Bool("dry-run", false, "print what would change, and change nothing")
	from := source(cmd)
	cmd.Args = words(2, 2)
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		src, err := from([]string{*dir})
		if err != nil {
			return err
		}
		var out bytes.Buffer
		done := terminal.Progress("evaluating the cluster, with both names")
		err = rename.Service(cmd.Context(), src, rename.Options{Dir: *dir, Old: words[0], New: words[1], DryRun: *dryRun, Out: &out})
		done()
		_, printed := out.WriteTo(cmd.OutOrStdout())
		return cmp.Or(err, printed)
	}
	return cmd
}
