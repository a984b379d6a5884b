package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/publish"
)

// former are the documents that a provider needs beside next where that is rolled out: the
// policies of provider hosts for the time of it, where these change, and the documents to go
// back to, which an operator published as the version before it.
func (p published) former(cmd *cobra.Command, r *signedRecord, next map[string][]document.Document, last int64, digest string, key signature.SecretKey, how client.Importing) ([]publish.Tree, error) {
	serial := publish.Tree(next).Head().Serial
	if how.AtOnce || !p.rolledOut(next) || last == 0 || last >= serial { // the same again, or refused
		return nil, nil
	}
	if served := r.served().Serial; served > last && served < serial {
		return nil, fmt.Errorf("the newest version that the provider has is %d, and %d was published: it lost that or hides it, so it is not known what to go back to: --at-once", last, served)
	}
	back, was, err := p.again(cmd, r, last, serial+1, digest)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "where its rollout fails, hosts go back to version %d, revision %.12s\n", last, cmp.Or(was.Rev, "unknown"))
	if err := r.add(signedVersion{Serial: serial + 1, Rev: was.Rev, Digest: publish.Tree(back).Digest()}); err != nil {
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
	for _, documents := range []map[string][]document.Document{bridge, back} {
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
func (p published) rolledOut(next map[string][]document.Document) bool {
	return slices.ContainsFunc(p.topology.Providers[distribution.Name].Hosts, func(host string) bool {
		return slices.ContainsFunc(next[host], func(d document.Document) bool {
			return d.Envelope.Kind == document.DocPolicy && d.Policy().Rollout != nil
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
			return terminal.PrintJSON(cmd.OutOrStdout(), s)
		}
		return s.Print(cmd.OutOrStdout())
	}
	return cmd
}
