package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/explain"
)

func newWhoCanCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "who-can [FLAKE] SERVICE",
		Short: "List who can reach a service or has a secret",
		Long: `List everybody who can reach a service, and the roles that give them access. For a generated
secret, write SERVICE as secret/NAME: the command then lists everybody who has the secret. For an
account at an SSH service, such as root@shell.forge, it lists everybody who may log in.

The command reads the flake alone. It does not show who is revoked or suspended, nor which grants
are in force. For this, run florctl revocations and florctl access list.`,
	}
	return question(cmd, 1, func(a *explain.Access, words []string) (fmt.Stringer, error) {
		if explain.IsSecret(words[0]) {
			return a.WhoHas(words[0])
		}
		if login, ok := a.Login(words[0]); ok {
			return a.WhoCanLogIn(login), nil
		}
		service, err := a.Service(words[0])
		return a.WhoCan(service), err
	})
}
