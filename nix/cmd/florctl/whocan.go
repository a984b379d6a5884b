package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/explain"
)

func newWhoCanCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "who-can [FLAKE] SERVICE",
		Short: "Say who reaches a service, and how",
	}
	return question(cmd, 1, func(a *explain.Access, words []string) (fmt.Stringer, error) {
		service, err := a.Service(words[0])
		return a.WhoCan(service), err
	})
}
