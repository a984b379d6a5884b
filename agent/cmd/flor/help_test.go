package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/florete/florete/tests/docs/commands"
)

// TestCommands checks that every command has help, and that docs/reference/flor.md is made from it.
// It also checks that pages use only commands and flags of flor that exist.
func TestCommands(t *testing.T) {
	commands.Test(t, func() *cobra.Command { return newRoot("flor", &instance{}) }, `For whoever looks after a host: every command of flor, which runs on each host of a cluster. Most of
the last group are units of systemd, which you do not run yourself. On a host of several clusters,
flor_NAME is the program of the instance NAME.

The same text is in `+"`flor COMMAND --help`"+` and in the manual pages, such as
flor-ping(1). The Nix package and bundles install these.`)
}
