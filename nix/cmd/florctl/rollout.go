package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/advance"
)

func newRolloutCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Print how a rollout stands; pause, resume or abort it",
		Long: `Where the topology has a rollout, what is published is offered to hosts wave after wave,
once those of the waves before have been healthy for a while. At the first that is not,
the provider goes back by itself: hosts are offered the former documents again.`,
	}
	for _, c := range []struct {
		act         advance.Act
		name, short string
	}{
		{"", "status", "Print how the rollout at work, or the last, stands"},
		{advance.Pause, "pause", "Offer it to nobody more, and do not go back either, until it is resumed"},
		{advance.Resume, "resume", "Go on with what was paused"},
		{advance.Abort, "abort", "Offer hosts the former documents again"},
	} {
		cmd.AddCommand(newRolloutAct(c.act, c.name, c.short))
	}
	return cmd
}

func newRolloutAct(act advance.Act, name, short string) *cobra.Command {
	cmd := &cobra.Command{Use: name + " [FLAKE]", Short: short}
	show := shown(cmd, "print JSON")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		if len(c.Providers) > 1 {
			return fmt.Errorf("cluster %s: %d hosts provide documents, and a rollout is of one", c.Topology.Name, len(c.Providers))
		}
		s, err := c.Providers[0].Rollout(cmd.Context(), act)
		if err != nil {
			return err
		}
		return show(s, s.Print)
	})
}
