package main

import (
	"errors"
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
		Short: "Sign the documents of all hosts and publish them",
		Long: `Compile the committed cluster, sign every document with the signing key, and send them to the
config providers. Hosts fetch them within seconds. With a rollout in the topology, hosts are
offered the documents in waves, and the provider goes back by itself at the first host that is
not healthy: see florctl rollout. To undo a publication, run florctl rollback. With disruption
budgets (rollout.atOnce), --at-once is refused unless you add --beyond-budget.

Where trust.threshold is above one, another operator first runs this command with --sign-only FILE
on the same commit, and you pass --with FILE. Both compile the cluster, so nobody signs documents
that they did not see.

With --out, write the signed documents to a file for flor-provider import, which serves them on a
provider host.

Nothing is published where a host lacks a capability that the cluster requires of its device
(` + strings.Join(hostreport.FoundCapabilities, ", ") + `), or where the flake lost a root that
certificates of a host lead to.

Exits 2 when only some of the config providers took the documents, and these do not share a store.
The others serve the former documents until you publish the same commit again.`,
	}
	reach, key := via(cmd), together(cmd)
	var how published.Publication
	f := cmd.Flags()
	f.StringVar(&how.Former, "former", "", "go back to a version that was published elsewhere, if this is its `DIGEST`, without asking")
	f.Int64Var(&how.Replaces, "replace", 0, "publish although the version of this `SERIAL`, which is in force, has commits that the flake lacks")
	closures := f.StringToString("closure", nil, "store path of a host's system, as `HOST=PATH`, which the host fetches from the binary cache; may be repeated")
	f.BoolVar(&how.AtOnce, "at-once", false, "offer the documents to all hosts at once, without waves, and end a rollout that is under way")
	f.BoolVar(&how.BeyondBudget, "beyond-budget", false, "with --at-once, exceed the disruption budgets of hosts")
	f.StringArrayVar(&how.Without, "without", nil, "leave this `HOST` behind with a root that the flake no longer has; may be repeated")
	foreign := f.Bool("replace-roots", false, "publish although the former version shares no root with the flake, and deploy every host by hand")
	offline := f.Bool("offline", false, "with --sign-only, sign the documents alone, for --out, without asking a provider")
	out := f.String("out", "", "write the signed documents to `FILE`, or to standard output for -, and publish nothing")
	cmd.MarkFlagRequired("key")
	cmd.MarkFlagsMutuallyExclusive("via", "out", "offline")
	cmd.MarkFlagsMutuallyExclusive("sign-only", "out")
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
		if *offline {
			if err := signed.WriteSignatures(cmd.OutOrStdout()); err != nil {
				return signedOnly(err)
			}
			return errors.New("--offline: want it with --sign-only FILE, or --out FILE instead")
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
		return signedOnly(c.Publish(cmd.Context(), signed, how))
	})
}

// together adds the flags of signing, and the flag with which an operator signs for another one.
func together(cmd *cobra.Command) func() (published.Key, error) {
	key := signing(cmd)
	only := cmd.Flags().String("sign-only", "", "sign, write the signatures to `FILE` for another operator, and do nothing else")
	return func() (published.Key, error) {
		k, err := key()
		return k.SignOnly(*only), err
	}
}

// signedOnly returns the error of an act, or nil if the act was to sign and nothing else.
func signedOnly(err error) error {
	if errors.Is(err, published.ErrSignedOnly) {
		return nil
	}
	return err
}

// signing adds the flags for the signing key, and for the signatures of other operators. The
// function it returns reads the key.
func signing(cmd *cobra.Command) func() (published.Key, error) {
	file := cmd.Flags().String("key", "", "`FILE` of the secret signing key, in Nix format")
	record := cmd.Flags().String("signed", "", "`FILE` that records what the key has signed, to compare a provider's answers with (default: that of --key, with .signed)")
	with := cmd.Flags().StringArray("with", nil, "add the signatures in `FILE`, which another operator wrote with florctl and --sign-only; may be repeated")
	return func() (published.Key, error) {
		k, err := published.ReadKey(*file, *record)
		if err != nil {
			return k, err
		}
		return k.With(*with)
	}
}
