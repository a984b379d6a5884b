package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/compile"
	"github.com/florete/florete/providers/private"
	"github.com/florete/florete/providers/publish"
)

func newPublishCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "publish [FLAKE] --key FILE",
		Short: "Sign a cluster's documents for the config provider",
		Long: `Compile a committed cluster, sign every document with a Nix signing key (made
by nix key generate-secret), and write them to standard output for a config provider:

  florctl publish --key signing.key | ssh root@forge flor-provider import

With --to they are put in DIR here, which the config provider serves: DIR/<host>.
Readers of DIR see the old documents or the new ones, whole.`,
	}
	from := source(cmd)
	keyFile := cmd.Flags().String("key", "", "secret signing key `FILE`, in Nix format")
	to := cmd.Flags().String("to", "", "`DIR` that the config provider serves")
	cmd.MarkFlagRequired("key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := from(args)
		if err != nil {
			return err
		}
		if err := private.RefuseTree(*keyFile); err != nil {
			return err
		}
		secret, err := private.ReadFile(*keyFile)
		if err != nil {
			return err
		}
		key, err := signature.LoadSecretKey(strings.TrimSpace(string(secret)))
		if err != nil {
			return fmt.Errorf("%s: not a secret key as nix key generate-secret makes it: %w", *keyFile, err)
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
		if err := refuseKeys(cmd.Context(), c.Name, tree); err != nil {
			return err
		}
		if err := publish.RejectUnpinned(c.Documents, key.ToPublicKey()); err != nil {
			return fmt.Errorf("cluster %s: %s: %w", c.Name, *keyFile, err)
		}
		if c.Unlocked(src) {
			return fmt.Errorf("cluster %s: flake.lock is missing or lacks an input, so nothing says which Florete compiled it: %s", c.Name, compile.LockCommand)
		}
		documents, err := publish.Sign(c.Documents, key, time.Now())
		if err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		told := fmt.Sprintf("cluster %s, %d hosts, serial %d, signed by %s", c.Name, len(documents), documents.Serial(), key.ToPublicKey().Name)
		if *to == "" {
			fmt.Fprintln(cmd.ErrOrStderr(), told)
			return documents.Encode(cmd.OutOrStdout())
		}
		if err := documents.Write(*to); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", *to, told)
		return nil
	}
	return cmd
}

// refuseKeys is an error when the tree that is about to be published holds private keys.
func refuseKeys(ctx context.Context, cluster string, t compile.Tree) error {
	faults, err := t.PrivateKeys(ctx)
	if err == nil && len(faults) > 0 {
		err = &compile.FaultsError{Cluster: cluster, Faults: faults}
	}
	return err
}
