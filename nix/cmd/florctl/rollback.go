package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/published"
)

func newRollbackCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback SERIAL [FLAKE] --key FILE",
		Short: "Publish a former version again",
		Long: `Publish the documents of a former version under a new serial, signed again. All hosts are offered
them at once, and a rollout that is under way ends. Hosts never go back to an older serial. The
next publication takes the flake as it is, so revert the change in the flake too.

Hosts with a disruption budget (rollout.atOnce) cannot all be changed at once: revert the change in
the flake and publish it, or add --beyond-budget.

Nothing is published where the version lacks a root that certificates of a host lead to. Exits 2
when only some of the config providers took the version: the others serve the former documents
until a publication reaches them. Where trust.threshold is above one, another operator first runs
this command with --sign-only FILE. To undo a rollback, publish again.`,
	}
	cluster, key := ofCluster(cmd), together(cmd)
	var to published.Rollback
	cmd.Flags().StringVar(&to.Digest, "digest", "", "sign a version that was published elsewhere, if this is its `DIGEST`, without asking")
	cmd.Flags().BoolVar(&to.BeyondBudget, "beyond-budget", false, "exceed the disruption budgets of hosts")
	cmd.Flags().StringArrayVar(&to.Without, "without", nil, "leave this `HOST` behind with a root that the version does not have; may be repeated")
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
		return signedOnly(c.Rollback(cmd.Context(), to))
	}
	return cmd
}
