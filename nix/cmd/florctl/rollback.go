package main

import (
	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/published"
)

func newRollbackCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback SERIAL [FLAKE] --key FILE",
		Short: "Publish a previous version again",
		Long: `Publish a previous version of the documents again, for example after a faulty publication.
SERIAL is a number that florctl versions prints. All hosts are offered the documents of that
version at once, and a current rollout ends. To undo a rollback, publish again.

The command does not change the flake. Revert the change there too: otherwise the next
publication brings the change back.

If hosts have disruption budgets (rollout.atOnce), a rollback would change all hosts at once, so
the command fails. Revert the change in the flake and publish it, or pass --beyond-budget.

The command also fails if a host still has certificates from a root that the version does not
contain. To go back anyway, pass --without HOST.

If trust.threshold in the topology is above one, another operator first runs the same command
with --sign-only FILE. Then run the command with --with FILE.

The command exits 2 if only some of several config providers accepted the version. The other
providers serve their current documents until a publication reaches them.`,
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
