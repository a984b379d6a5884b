package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/advance"
)

func newRolloutCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Show or control the rollout of a publication",
		Long: `Show or control a rollout, in which hosts are offered a publication in waves. A publication is
rolled out in this way if the topology has a rollout. The next wave begins when the hosts of the
previous waves have been healthy for a while. At the first host that is not healthy, the
provider goes back by itself: it offers hosts the previous documents again.`,
	}
	for _, c := range []struct {
		act               advance.Act
		name, short, long string
	}{
		{"", "status", "Print the state of the rollout", `
Print the state of the current rollout, or of the last one. In a rollout, providers offer a
publication to hosts in waves. The command prints the waves, and the hosts that the rollout
waits for. It changes nothing.`},
		{advance.Pause, "pause", "Pause the rollout", `
Pause the current rollout. During the pause, the provider offers the new documents to no more
hosts, and does not go back to the previous documents by itself. To continue the rollout, run
florctl rollout resume.`},
		{advance.Resume, "resume", "Continue a paused rollout", `
Continue a rollout that is paused. The rollout goes on with its next wave of hosts. To pause it
again, run florctl rollout pause.`},
		{advance.Abort, "abort", "Abort the rollout, and go back", `
Abort the current rollout, and offer all hosts the previous documents again. To start another
rollout, publish again.

Hosts with a disruption budget (rollout.atOnce) go back only as fast as their budget permits. To
see which hosts wait, run florctl rollout status. With --beyond-budget, all hosts go back at
once.`},
	} {
		cmd.AddCommand(newRolloutAct(c.act, c.name, c.short, c.long))
	}
	return cmd
}

func newRolloutAct(act advance.Act, name, short, long string) *cobra.Command {
	cmd := &cobra.Command{Use: name + " [FLAKE]", Short: short, Long: strings.TrimSpace(long)}
	show := terminal.Shown(cmd, "print the state of the rollout as a JSON object")
	beyond := new(bool)
	if act == advance.Abort {
		cmd.Flags().BoolVar(beyond, "beyond-budget", false, "change more hosts at the same time than their disruption budgets permit")
	}
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		if len(c.Providers) > 1 {
			return fmt.Errorf("cluster %s: %d hosts provide documents, want one for a rollout", c.Topology.Name, len(c.Providers))
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
