package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/providers/publish"
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
	cluster := ofCluster(cmd)
	keyFile, signed := keyFlag(cmd), signedFlag(cmd)
	digest := cmd.Flags().String("digest", "", "sign a version that was published elsewhere, if this is its `DIGEST`, without a question")
	without := cmd.Flags().StringArray("without", nil, "a `HOST` that may be left behind with a root that the version does not have; several times")
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
		return p.rollback(cmd, serial, rollback{key: key, keyFile: *keyFile, record: *signed, digest: *digest, without: *without})
	}
	return cmd
}

// rollback says how to go back.
type rollback struct {
	key     signature.SecretKey
	keyFile string
	record  string   // of what the key signed; empty for the one beside the key
	digest  string   // of a version that is on no record
	without []string // hosts that may be left behind
}

// rollback publishes the documents of a version as the newest.
func (p published) rollback(cmd *cobra.Command, serial int64, how rollback) error {
	ctx := cmd.Context()
	versions, err := p.versions(ctx)
	if err != nil {
		return err
	}
	if len(versions) == 0 || versions[0].Serial == serial {
		return fmt.Errorf("serial %d is the newest: want one before it, of florctl versions", serial)
	}
	signedBy, err := openRecord(how.keyFile, how.record, p.topology.Name)
	if err != nil {
		return err
	}
	newest := versions[0].Serial
	next := max(time.Now().Unix(), newest+1, signedBy.newest()+1)
	inForce, err := p.tree(ctx, newest)
	if err != nil {
		return err
	}
	// Hosts verify by the manifest in force, and whatever comes after by the one that is published.
	pinned := func(documents map[string][]document.Document) error {
		if err := publish.RejectUnpinned(documents, how.key.ToPublicKey()); err != nil {
			return fmt.Errorf("cluster %s: %s: %w", p.topology.Name, how.keyFile, err)
		}
		return nil
	}
	if err := pinned(inForce); err != nil {
		return err
	}
	documents, former, err := p.again(cmd, signedBy, serial, next, how.digest)
	if err != nil {
		return err
	}
	if err := pinned(documents); err != nil {
		return err
	}
	roots := rootsOf(documents)
	reports, err := p.providers.Reports(ctx)
	if err == nil {
		err = rootsLeft(p.topology, roots, reports, how.without)
	}
	if err != nil {
		return err
	}
	tree, err := publish.Sign(documents, how.key, time.Now())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", p.topology.Name, err)
	}
	version := signedVersion{Serial: next, Rev: former.Rev, Digest: tree.Digest(), Roots: roots}
	return p.publishRecorded(cmd, signedBy, version, client.Importing{Back: serial, AtOnce: p.rolledOut(inForce) || p.rolledOut(documents)}, tree)
}

// tree returns the documents of a version, as the first provider has them that answers. Their signatures, their
// cluster and their serial are right; whether they are all of it, only a record knows.
func (p published) tree(ctx context.Context, serial int64) (publish.Tree, error) {
	tree := publish.Tree{}
	hosts, err := p.read(ctx, serial)
	for _, h := range hosts {
		for _, raw := range h.Documents {
			d, err := document.Open([]byte(raw.Envelope), []byte(raw.Body), raw.Signature)
			if err != nil {
				return nil, err
			}
			tree[h.Name] = append(tree[h.Name], d)
		}
	}
	return tree, err
}

// again returns the documents of a version under another serial, to be signed again: those that
// the record has, or that an operator accepts.
func (p published) again(cmd *cobra.Command, r *signedRecord, serial, as int64, digest string) (map[string][]document.Document, signedVersion, error) {
	tree, err := p.tree(cmd.Context(), serial)
	if err != nil {
		return nil, signedVersion{}, err
	}
	v := signedVersion{Serial: serial, Rev: tree.Rev(), Digest: tree.Digest()}
	known, ok := r.version(serial)
	switch {
	case ok && known.Digest == v.Digest:
		v.Rev = known.Rev
	case ok:
		err = fmt.Errorf("version %d: the provider answers with %s, and %s has %s: nothing is signed", serial, v.Digest, r.path, known.Digest)
	case digest == v.Digest:
	case digest != "":
		err = fmt.Errorf("version %d: the provider answers with %s, not %s: nothing is signed", serial, v.Digest, digest)
	default:
		err = confirmed(cmd, fmt.Sprintf("Version %d, revision %.12s, %d hosts, %s, is not on the record of what this key signed here, %s.\nHas an operator published it, and is it to be signed again?", serial, cmp.Or(v.Rev, "unknown"), len(tree), v.Digest, r.path),
			fmt.Sprintf("version %d is not in %s, and nothing is signed: --digest %s accepts it", serial, r.path, v.Digest))
	}
	if err != nil {
		return nil, v, err
	}
	all := map[string][]document.Document{}
	for host, documents := range tree {
		for _, d := range documents {
			again, err := publish.Renumber(d, as)
			if err != nil {
				return nil, v, err
			}
			all[host] = append(all[host], again)
		}
	}
	return all, v, nil
}

// publishRecorded has all providers serve a version, and records it.
func (p published) publishRecorded(cmd *cobra.Command, r *signedRecord, v signedVersion, how client.Importing, tree publish.Tree, follow ...publish.Tree) error {
	if is, ok := r.version(v.Serial); !ok || !is.Served {
		if err := r.add(v); err != nil {
			return err
		}
	}
	taken, err := p.publish(cmd, how, tree, follow...)
	if err != nil {
		return err
	}
	v.Served = true
	if err := r.add(v); err != nil {
		return err
	}
	if taken < len(p.providers) && !sharesStore(tree) {
		return errPartly
	}
	return nil
}

// sharesStore reports whether the provider hosts of a tree have one store, so that what one of them takes
// all of them serve.
func sharesStore(tree publish.Tree) bool {
	for _, documents := range tree {
		for _, d := range documents {
			if d.Envelope.Kind == document.DocPolicy && d.Policy().Store != nil {
				return true
			}
		}
	}
	return false
}

// publish has all providers serve the tree, with those that follow it, and returns how many took it. It
// fails when none did.
func (p published) publish(cmd *cobra.Command, how client.Importing, tree publish.Tree, follow ...publish.Tree) (taken int, err error) {
	err = p.providers.All(func(to *client.Provider) error {
		var text bytes.Buffer
		if err := tree.Encode(&text, follow...); err != nil {
			return err
		}
		report, err := to.Import(cmd.Context(), &text, how)
		if err == nil {
			taken++
			fmt.Fprintln(cmd.OutOrStdout(), report)
		}
		return err
	})
	return taken, err
}
