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
		Long: `Publish the flake to all hosts. The command compiles the committed flake, signs the documents
with the signing key, and sends them to the config providers. Hosts fetch their documents within
seconds. To undo a publication, run florctl rollback.

If the topology has a rollout, providers offer the documents to hosts in waves. At the first
unhealthy host, all hosts are offered the previous documents again. To follow the rollout, run
florctl rollout status.

If trust.threshold in the topology is above one, another operator first runs this command on the
same commit with --sign-only FILE. Then run the command with --with FILE. Both operators compile
the cluster, so that nobody signs documents that they did not see.

For a cluster that this machine cannot reach, write the signed documents to a file with --out.
On a provider host, flor-provider import reads this file and publishes the documents.

The command also signs the revocation list again, so that it names the new version, and makes the
first list if there is none. Providers that lost the list, or have an older one, get the newest.

Nothing is published if a host lacks a capability that the topology requires of its device
(` + strings.Join(hostreport.FoundCapabilities, ", ") + `). Nothing is published either if certificates of a host lead to a
root that the flake no longer has.

The command exits 2 if only some of several config providers accepted the documents, and these
providers do not share a store. The other providers serve the previous documents until you
publish the same commit again.`,
	}
	reach, key := via(cmd), together(cmd)
	var how published.Publication
	f := cmd.Flags()
	f.StringVar(&how.Former, "former", "", "without asking, go back to a version that was published elsewhere, if it has this `DIGEST`")
	f.Int64Var(&how.Replaces, "replace", 0, "publish although the flake lacks commits of the version in force, if that version has this `SERIAL`")
	closures := f.StringToString("closure", nil, "store path of a host's NixOS system, as `HOST=PATH`; the host fetches it from the binary cache; may be repeated")
	f.BoolVar(&how.AtOnce, "at-once", false, "offer the documents to all hosts at once instead of in waves, and end a rollout that is under way")
	f.BoolVar(&how.BeyondBudget, "beyond-budget", false, "with --at-once, change more hosts at the same time than their disruption budgets permit")
	f.StringArrayVar(&how.Without, "without", nil, "publish although this `HOST` still depends on a root that the flake no longer has; may be repeated")
	foreign := f.Bool("replace-roots", false, "publish although the flake has none of the roots of the previous version; you must then deploy every host by hand")
	offline := f.Bool("offline", false, "with --sign-only, sign the documents alone, for --out, and contact no provider")
	out := f.String("out", "", "write the signed documents to this `FILE`, or to standard output if it is -, and publish nothing")
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
	only := cmd.Flags().String("sign-only", "", "write your signatures to this `FILE` for another operator, and do nothing else")
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
	file := cmd.Flags().String("key", "", "`FILE` that contains the secret signing key, such as signing.key from florctl init")
	record := cmd.Flags().String("signed", "", "`FILE` in which florctl records what the key has signed, to check a provider's answers against (default: the path of --key with .signed)")
	with := cmd.Flags().StringArray("with", nil, "add the signatures in this `FILE`, which another operator wrote with --sign-only; may be repeated")
	return func() (published.Key, error) {
		k, err := published.ReadKey(*file, *record)
		if err != nil {
			return k, err
		}
		return k.With(*with)
	}
}
