package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/explain"
)

func newWhoCanCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "who-can [FLAKE] SERVICE",
		Short: "List who reaches a service or has a secret",
		Long: `List everybody who reaches a service, and the roles that give them access. If SERVICE has the
form secret/NAME, list everybody who has that generated secret.

The answer comes from the flake alone. To print who is revoked or suspended, run florctl
revocations.`,
	}
	return question(cmd, 1, func(a *explain.Access, words []string) (fmt.Stringer, error) {
		if explain.IsSecret(words[0]) {
			return a.WhoHas(words[0])
		}
		service, err := a.Service(words[0])
		return a.WhoCan(service), err
	})
}
