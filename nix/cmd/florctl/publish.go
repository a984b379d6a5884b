package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/providers/publish"
)

func newPublishCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "publish [FLAKE] --key FILE",
		Short: "Sign a cluster's documents and have the config providers serve them",
		Long: `Compile a committed cluster, sign every document with a Nix signing key (made
by nix key generate-secret), and have the cluster's config providers serve them. With
--out they are written for one instead:

  florctl publish --key signing.key --out documents
  flor-provider import < documents

Where the topology has a rollout, they are offered wave after wave, and the provider goes
back to the former ones at the first host that is not healthy: florctl rollout.

Providers are not to serve them where a host that reports lacks a device that the cluster
cluster requires of it: ` + strings.Join(hostreport.FoundCapabilities, ", ") + `; nor
where the flake has lost a root that certificates of a host lead to.

Exits 2 where only some of the providers took them, and these do not share a store: the others
serve the former documents until the same is published again.`,
	}
	from := source(cmd)
	reach := via(cmd)
	keyFile, signed := keyFlag(cmd), signedFlag(cmd)
	former := cmd.Flags().String("former", "", "go back to a version that was published elsewhere, if this is its `DIGEST`, without a question")
	replaces := cmd.Flags().Int64("replace", 0, "publish though the version of this `SERIAL`, which is in force, has commits that the flake lacks")
	closures := cmd.Flags().StringToString("closure", nil, "store path of a host's system, which hosts then fetch from the binary cache, as `HOST=PATH`; may be repeated")
	atOnce := cmd.Flags().Bool("at-once", false, "offer them to all hosts, whatever waves the cluster's rollout has, and end the one at work")
	without := cmd.Flags().StringArray("without", nil, "a `HOST` that may be left behind with a root that the flake has no more; several times")
	foreign := cmd.Flags().Bool("replace-roots", false, "publish though the version before shares no root with the flake, and every host is deployed by hand")
	out := cmd.Flags().String("out", "", "write the documents to `FILE` instead, - for standard output")
	cmd.MarkFlagsMutuallyExclusive("via", "out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := from(args)
		if err != nil {
			return err
		}
		key, err := signingKey(*keyFile)
		if err != nil {
			return err
		}
		tree, err := compile.ReadTree(cmd.Context(), src)
		if err != nil {
			return err
		}
		if tree.Revision == "" {
			return errors.New("the flake's tree has uncommitted changes: commit them and publish that")
		}
		c, err := compile.Compile(cmd.Context(), src)
		if err != nil {
			return err
		}
		if err := refuseFiles(cmd.Context(), c.Name, tree); err != nil {
			return err
		}
		if err := publish.RejectUnpinned(c.Documents, key.ToPublicKey()); err != nil {
			return fmt.Errorf("cluster %s: %s: %w", c.Name, *keyFile, err)
		}
		if c.Unversioned() {
			return fmt.Errorf("cluster %s: its documents have no serial, so hosts would not know which is newer: write inherit self; in the arguments of mkCluster, and commit", c.Name)
		}
		if c.Unlocked(src) {
			return fmt.Errorf("cluster %s: flake.lock is missing or lacks an input, so nothing says which Florete compiled it: %s", c.Name, compile.LockCommand)
		}
		if err := publish.NameClosures(c.Documents, *closures); err != nil {
			return fmt.Errorf("cluster %s: --closure: %w", c.Name, err)
		}
		documents, err := publish.Sign(c.Documents, key, time.Now())
		if err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "cluster %s, %d hosts, serial %d, signed by %s\n", c.Name, len(documents), documents.Head().Serial, key.ToPublicKey().Name)
		record, err := openRecord(*keyFile, *signed, c.Name)
		if err != nil {
			return err
		}
		roots := rootsOf(c.Documents)
		if err := compile.CheckFingerprintsKept(record.roots(), roots); err != nil && !*foreign {
			return fmt.Errorf("cluster %s: %w; --replace-roots where every host is deployed by hand", c.Name, err)
		}
		version := signedVersion{Serial: documents.Head().Serial, Rev: tree.Revision, Digest: documents.Digest(), Roots: roots}
		if *out != "" {
			if is, ok := record.version(version.Serial); !ok || !is.Served {
				if err := record.add(version); err != nil {
					return err
				}
			}
			_, err := atomicfile.Output(*out, 0o644, os.Stdout, func(f *os.File) error { return documents.Encode(f) })
			return err
		}
		t, err := compile.ReadTopology(cmd.Context(), src)
		if err != nil {
			return err
		}
		providers, err := reach(t)
		if err != nil {
			return err
		}
		reports, err := providers.Reports(cmd.Context())
		if err == nil {
			err = fleet.Absent(t, reports, time.Now())
		}
		if err == nil {
			err = rootsLeft(t, roots, reports, *without)
		}
		if err != nil {
			return err
		}
		p, how := published{t, providers}, client.Importing{AtOnce: *atOnce}
		last, err := p.newestVersion(cmd.Context(), record)
		if err != nil {
			return err
		}
		if last.Rev != "" && last.Serial < version.Serial && last.Serial != *replaces {
			if err := src.Descends(cmd.Context(), version.Rev, last.Rev); err != nil {
				return fmt.Errorf("cluster %s: version %d is in force: %w; --replace %[2]d undoes what it has", c.Name, last.Serial, err)
			}
		}
		follow, err := p.former(cmd, record, c.Documents, last.Serial, *former, key, how)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		partly := p.publishRecorded(cmd, record, version, how, documents, follow...)
		if partly != nil && !errors.Is(partly, errPartly) {
			return partly
		}
		return cmp.Or(p.renewList(cmd, key, record), partly)
	}
	return cmd
}

// rootsOf returns the fingerprints of the roots that documents have.
func rootsOf(documents map[string][]document.Document) []string {
	for _, all := range documents {
		for _, d := range all {
			if d.Envelope.Kind != document.DocManifest {
				continue
			}
			m := d.Manifest()
			if roots, err := trust.NewRoots(m.TrustDomain, m.Trust.Roots); err == nil {
				return roots.Fingerprints()
			}
		}
	}
	return nil
}

// rootsLeft returns an error where documents lack a root that hosts have certificates of.
func rootsLeft(t compile.Topology, roots []string, reports map[string]hostreport.Kept, without []string) error {
	by, err := fleet.ReadRoots(t, reports, without, time.Now())
	if err == nil {
		err = by.Left(roots)
	}
	if err != nil {
		return fmt.Errorf("cluster %s: %w", t.Name, err)
	}
	return nil
}

// keyFlag adds the flag that names the key which signs documents.
func keyFlag(cmd *cobra.Command) *string {
	file := cmd.Flags().String("key", "", "secret signing key `FILE`, in Nix format")
	cmd.MarkFlagRequired("key")
	return file
}

// signingKey reads a key that signs documents.
func signingKey(file string) (key signature.SecretKey, err error) {
	if err := secretfile.RefuseTree(file); err != nil {
		return key, err
	}
	secret, err := secretfile.ReadFile(file)
	if err != nil {
		return key, err
	}
	if key, err = signature.LoadSecretKey(strings.TrimSpace(string(secret))); err != nil {
		return key, fmt.Errorf("%s: not a secret key as nix key generate-secret makes it: %w", file, err)
	}
	return key, nil
}

// refuseFiles returns an error where the files of the tree that is about to be published have faults.
func refuseFiles(ctx context.Context, cluster string, t compile.Tree) error {
	faults, err := t.Faults(ctx)
	if err == nil && len(faults) > 0 {
		err = &compile.FaultsError{Cluster: cluster, Faults: faults}
	}
	return err
}
