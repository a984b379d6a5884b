package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"github.com/spf13/cobra"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/publish"
)

// former are the documents that a provider needs beside next where that is rolled out: the
// policies of provider hosts for the time of it, where these change, and the documents to go
// back to.
func (p published) former(ctx context.Context, next map[string][]florete.Document, key signature.SecretKey, how importing) ([]publish.Tree, error) {
	if how.atOnce || !p.rolledOut(next) {
		return nil, nil
	}
	versions, err := p.providers[0].Versions(ctx)
	if err != nil || len(versions) == 0 {
		return nil, err
	}
	serial := publish.Tree(next).Head().Serial
	last := versions[0].Serial
	if last >= serial { // the same again, or refused
		return nil, nil
	}
	back, err := p.documents(ctx, last, serial+1)
	if err != nil {
		return nil, err
	}
	// Hosts that go back verify whatever comes after by these.
	if err := publish.RejectUnpinned(back, key.ToPublicKey()); err != nil {
		return nil, err
	}
	bridge, err := publish.Bridge(next, back, serial-1)
	if err != nil {
		return nil, err
	}
	var trees []publish.Tree
	for _, documents := range []map[string][]florete.Document{bridge, back} {
		if len(documents) == 0 {
			continue
		}
		tree, err := publish.Sign(documents, key, time.Now())
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

// rolledOut reports whether the policy of the host that provides documents has waves.
func (p published) rolledOut(next map[string][]florete.Document) bool {
	return slices.ContainsFunc(p.topology.Providers[config.Name].Hosts, func(host string) bool {
		return slices.ContainsFunc(next[host], func(d florete.Document) bool {
			return d.Envelope.Kind == florete.DocPolicy && d.Policy().Rollout != nil
		})
	})
}

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
	cluster := ofCluster(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := cluster(cmd.Context(), args)
		if err != nil {
			return err
		}
		if len(p.providers) > 1 {
			return fmt.Errorf("cluster %s: %d hosts provide documents, and a rollout is of one", p.topology.Name, len(p.providers))
		}
		s, err := p.providers[0].Rollout(cmd.Context(), act)
		switch {
		case err != nil:
			return err
		case *asJSON:
			return printJSON(cmd, s)
		}
		return s.Print(cmd.OutOrStdout())
	}
	return cmd
}
