package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/explain"
)

func newWhoCanCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "who-can [FLAKE] SERVICE",
		Short: "Say who reaches a service, and how, or who has secret/NAME",
		Long: `Say who reaches a service, and how, or who has secret/NAME. The answer is of the flake
alone: florctl revocations prints who is revoked or suspended.`,
	}
	return question(cmd, 1, func(a *explain.Access, words []string) (fmt.Stringer, error) {
		if explain.IsSecret(words[0]) {
			return a.WhoHas(words[0])
		}
		service, err := a.Service(words[0])
		return a.WhoCan(service), err
	})
}
