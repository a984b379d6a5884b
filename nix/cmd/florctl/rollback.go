package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/publish"
)

func newRollbackCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback SERIAL [FLAKE] --key FILE",
		Short: "Publish the documents of a version again, as the newest",
		Long: `Publish the documents that a version has, under a new serial and signed anew: hosts
never go back to an older one. All are offered them at once, and a rollout at work ends.
What the flake has is published with the next commit, so revert there too.`,
	}
	cluster := ofCluster(cmd)
	keyFile := keyFlag(cmd)
	cmd.Args = words(1, 2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		serial, err := parseSerial(args[0])
		if err != nil {
			return err
		}
		key, err := signingKey(*keyFile)
		if err != nil {
			return err
		}
		p, err := cluster(ctx, args[1:])
		if err != nil {
			return err
		}
		versions, err := p.providers[0].Versions(ctx)
		if err != nil {
			return err
		}
		if len(versions) == 0 || versions[0].Serial == serial {
			return fmt.Errorf("serial %d is the newest: want one before it, of florctl versions", serial)
		}
		newest := versions[0].Serial
		next := max(time.Now().Unix(), newest+1)
		inForce, err := p.documents(ctx, newest, newest)
		if err != nil {
			return err
		}
		documents, err := p.documents(ctx, serial, next)
		if err != nil {
			return err
		}
		// Hosts verify by the manifest in force, and whatever comes after by this one.
		for _, pinned := range []map[string][]florete.Document{inForce, documents} {
			if err := publish.RejectUnpinned(pinned, key.ToPublicKey()); err != nil {
				return fmt.Errorf("cluster %s: %s: %w", p.topology.Name, *keyFile, err)
			}
		}
		tree, err := publish.Sign(documents, key, time.Now())
		if err != nil {
			return fmt.Errorf("cluster %s: %w", p.topology.Name, err)
		}
		return p.publish(cmd, importing{back: serial, atOnce: p.rolledOut(inForce) || p.rolledOut(documents)}, tree)
	}
	return cmd
}

// documents are those of a version, under another serial.
func (p published) documents(ctx context.Context, serial, as int64) (map[string][]florete.Document, error) {
	all := map[string][]florete.Document{}
	err := p.read(ctx, serial, func(h publish.Host) error {
		for _, raw := range h.Documents {
			d, err := publish.Renumber(raw, as)
			if err != nil {
				return err
			}
			all[h.Name] = append(all[h.Name], d)
		}
		return nil
	})
	return all, err
}

// publish has all providers serve the tree, with those that follow it.
func (p published) publish(cmd *cobra.Command, how importing, tree publish.Tree, follow ...publish.Tree) error {
	for _, to := range p.providers {
		var text bytes.Buffer
		if err := tree.Encode(&text, follow...); err != nil {
			return err
		}
		report, err := to.Import(cmd.Context(), &text, how)
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), report)
	}
	return nil
}
