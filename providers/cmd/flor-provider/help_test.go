package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/florete/florete/tests/docs/commands"
)

// TestCommands checks that every command has a help text, and that pages use only commands and
// flags of flor-provider that exist. The file docs/reference/flor-provider.md is generated from the
// help texts.
func TestCommands(t *testing.T) {
	commands.Test(t, func() *cobra.Command { return newRoot("flor-provider", &target{}) }, `For operators who work on a provider host as root: every command of flor-provider. Most tasks have a
command of [florctl](florctl.md), which you run on your own machine. On a host of several clusters,
flor-provider_NAME is the program of the instance NAME.

The same text is in `+"`flor-provider COMMAND --help`"+` and in the manual pages, such as
flor-provider-audit(1). The Nix package and bundles install these.`)
}
