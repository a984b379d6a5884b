package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/published"
)

func newRollbackCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback SERIAL [FLAKE] --key FILE",
		Short: "Publish the documents of a version again, as the newest",
		Long: `Publish the documents that a version has, under a new serial and signed anew: hosts
never go back to an older one. All are offered them at once, and a rollout at work ends.
What the flake has is published with the next commit, so revert there too.

Nothing is published where the version lacks a root that certificates of a host lead to. Exits 2
where only some providers took it: the others serve the former documents until a publication reaches them.`,
	}
	cluster, key := ofCluster(cmd), signing(cmd)
	var to published.Rollback
	cmd.Flags().StringVar(&to.Digest, "digest", "", "sign a version that was published elsewhere, if this is its `DIGEST`, without a question")
	cmd.Flags().StringArrayVar(&to.Without, "without", nil, "a `HOST` that may be left behind with a root that the version does not have; several times")
	cmd.MarkFlagRequired("key")
	cmd.Args = words(1, 2)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if to.Serial, err = parseSerial(args[0]); err != nil {
			return err
		}
		if to.Key, err = key(); err != nil {
			return err
		}
		c, err := cluster(args[1:])
		if err != nil {
			return err
		}
		return c.Rollback(cmd.Context(), to)
	}
	return cmd
}
