package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/published"
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
	reach, key := via(cmd), signing(cmd)
	var how published.Publication
	f := cmd.Flags()
	f.StringVar(&how.Former, "former", "", "go back to a version that was published elsewhere, if this is its `DIGEST`, without a question")
	f.Int64Var(&how.Replaces, "replace", 0, "publish though the version of this `SERIAL`, which is in force, has commits that the flake lacks")
	closures := f.StringToString("closure", nil, "store path of a host's system, which hosts then fetch from the binary cache, as `HOST=PATH`; may be repeated")
	f.BoolVar(&how.AtOnce, "at-once", false, "offer them to all hosts, whatever waves the cluster's rollout has, and end the one at work")
	f.StringArrayVar(&how.Without, "without", nil, "a `HOST` that may be left behind with a root that the flake has no more; several times")
	foreign := f.Bool("replace-roots", false, "publish though the version before shares no root with the flake, and every host is deployed by hand")
	out := f.String("out", "", "write the documents to `FILE` instead, - for standard output")
	cmd.MarkFlagRequired("key")
	cmd.MarkFlagsMutuallyExclusive("via", "out")
	return onSource(cmd, func(src compile.Source) error {
		k, err := key()
		if err != nil {
			return err
		}
		signed, err := published.Sign(cmd.Context(), src, k, *closures)
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), signed)
		if !*foreign {
			if err := signed.CheckRootsKept(); err != nil {
				return err
			}
		}
		if *out != "" {
			return signed.Write(*out, os.Stdout)
		}
		t, err := compile.ReadTopology(cmd.Context(), src)
		if err != nil {
			return err
		}
		c, err := reach(t)
		if err != nil {
			return err
		}
		return c.Publish(cmd.Context(), signed, how)
	})
}

// signing adds the flags that name the key which signs. The function it returns reads it.
func signing(cmd *cobra.Command) func() (published.Key, error) {
	file := cmd.Flags().String("key", "", "secret signing key `FILE`, in Nix format")
	record := cmd.Flags().String("signed", "", "`FILE` with what the key has signed, which a provider's answers are compared with (default: that of --key, with .signed)")
	return func() (published.Key, error) { return published.ReadKey(*file, *record) }
}
