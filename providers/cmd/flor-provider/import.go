package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/publish"
	"github.com/florete/florete/providers/settings"
)

// importCmd puts the documents where this provider serves them from. It may run beside
// the provider.
func importCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Import the documents that florctl publish signed",
		Long: `Read the documents that florctl publish signed from standard input, and serve those
from now on. What is not signed by a key that this provider's policy pins, or is older
than what it serves, is refused.`,
	}
	return t.withSettings(config.Name, cmd, func(cmd *cobra.Command, s *settings.Settings) error {
		policy, err := readPolicy(s)
		if err != nil {
			return err
		}
		tree, err := publish.Decode(cmd.InOrStdin(), policy.Trust.SigningKeys)
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		if err := tree.Write(s.Config.Artifacts); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %d hosts, serial %d\n", s.Config.Artifacts, len(tree), tree.Serial())
		return nil
	})
}

// readPolicy reads the policy that was deployed here.
func readPolicy(s *settings.Settings) (florete.Policy, error) {
	doc, err := florete.Read(s.Policy, florete.DocPolicy)
	return doc.Policy(), err
}
