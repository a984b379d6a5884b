package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/published"
)

func newRollbackCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback SERIAL [FLAKE] --key FILE",
		Short: "Publish a previous version again",
		Long: `Go back to a previous version of the documents. SERIAL is a number that florctl versions prints.
The command signs the documents of that version again under a new serial, because hosts refuse
an older one, and publishes them. All hosts are offered them at once, and a rollout that is
under way ends.

The flake is not changed. Revert the change in the flake too, because the next publication takes
the flake as it is. To undo a rollback, publish again.

If hosts have disruption budgets (rollout.atOnce), the command is refused, because it would
change all hosts at once. Revert the change in the flake and publish it instead, or add
--beyond-budget.

Nothing is published if certificates of a host lead to a root that the version lacks. The
command exits 2 if only some of several config providers accepted the version. The others serve
their documents until a publication reaches them. If trust.threshold in the topology is above
one, another operator first runs the same command with --sign-only FILE, and you add --with
FILE.`,
	}
	cluster, key := ofCluster(cmd), together(cmd)
	var to published.Rollback
	cmd.Flags().StringVar(&to.Digest, "digest", "", "without asking, sign a version that was published elsewhere, if it has this `DIGEST`")
	cmd.Flags().BoolVar(&to.BeyondBudget, "beyond-budget", false, "change more hosts at the same time than their disruption budgets permit")
	cmd.Flags().StringArrayVar(&to.Without, "without", nil, "go back although this `HOST` depends on a root that the version does not have; may be repeated")
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
