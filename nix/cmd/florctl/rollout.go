package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/advance"
)

func newRolloutCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Show or steer the rollout of a publication",
		Long: `With a rollout in the topology, a publication is offered to hosts in waves: to the next wave when
the hosts of the former ones have been healthy for a while. At the first host that is not healthy,
the provider goes back by itself, and offers hosts the former documents again.`,
	}
	for _, c := range []struct {
		act               advance.Act
		name, short, long string
	}{
		{"", "status", "Print the state of the rollout", `
Print the state of the rollout that is under way, or of the last one: its waves, and the hosts that
it waits for.`},
		{advance.Pause, "pause", "Pause the rollout", `
Pause the rollout: from now on the documents are offered to no further host, and the provider does
not go back either. florctl rollout resume continues.`},
		{advance.Resume, "resume", "Continue a paused rollout", `
Continue a paused rollout with its next wave. florctl rollout pause pauses it again.`},
		{advance.Abort, "abort", "End the rollout, and go back", `
End the rollout, and offer all hosts the former documents again. Hosts with a disruption budget
(rollout.atOnce) go back as it permits: florctl rollout status shows which hosts wait, and for
which. With --beyond-budget all of them go back at once. Publish again to start another.`},
	} {
		cmd.AddCommand(newRolloutAct(c.act, c.name, c.short, c.long))
	}
	return cmd
}

func newRolloutAct(act advance.Act, name, short, long string) *cobra.Command {
	cmd := &cobra.Command{Use: name + " [FLAKE]", Short: short, Long: strings.TrimSpace(long)}
	show := shown(cmd, "print JSON")
	beyond := new(bool)
	if act == advance.Abort {
		cmd.Flags().BoolVar(beyond, "beyond-budget", false, "exceed the disruption budgets of hosts")
	}
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		if len(c.Providers) > 1 {
			return fmt.Errorf("cluster %s: %d hosts provide documents, and a rollout is of one", c.Topology.Name, len(c.Providers))
		}
		act := act
		if *beyond {
			act = advance.AbortBeyondBudget
		}
		s, err := c.Providers[0].Rollout(cmd.Context(), act)
		if err != nil {
			return err
		}
		return show(s, s.Print)
	})
}
