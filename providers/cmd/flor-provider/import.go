package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/publish"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/store"
)

// importCmd makes the documents of a cluster those that this provider serves. It may run
// beside the provider.
func importCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Import the documents that florctl publish signed",
		Long: `Read the documents that florctl publish signed from standard input, and serve those
from now on. What is not signed by a key that this provider's policy pins, or is older
than what it serves, is refused.`,
	}
	atOnce := cmd.Flags().Bool("at-once", false, "offer them to all hosts, whatever waves the cluster has")
	return t.withArchive(cmd, func(cmd *cobra.Command, s *settings.Settings, a archive.Archive) error {
		policy, err := readPolicy(s)
		if err != nil {
			return err
		}
		r, err := publish.NewReader(cmd.InOrStdin())
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		keep := s.Section.(*config.Settings).Versions()
		v, changed, err := a.Import(cmd.Context(), r, archive.Terms{
			Keys: policy.Trust.SigningKeys, Keep: keep, Host: policy.Host, AtOnce: *atOnce, Before: advance.Before(a)})
		var refusal *archive.Refusal
		switch {
		case errors.Is(err, store.ErrUnavailable):
			return fmt.Errorf("%s; whether this was done is not known: repeat the same command, which does nothing twice: %w", server.Unavailable(err), err)
		case err != nil && !errors.As(err, &refusal):
			return err
		case err != nil:
			return fmt.Errorf("standard input: %w", err)
		}
		fmt.Fprintln(cmd.OutOrStdout(), archive.Report(v, changed))
		rollout, err := advance.StatusOf(cmd.Context(), a)
		if err == nil && rollout.AtWork() {
			err = rollout.Print(cmd.OutOrStdout())
		}
		return err
	})
}

// readPolicy reads the policy in force.
func readPolicy(s *settings.Settings) (document.Policy, error) {
	doc, err := document.Read(s.Policy(), document.DocPolicy)
	return doc.Policy(), notInForce(err)
}
