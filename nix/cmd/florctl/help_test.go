package main

import (
	"testing"

	"github.com/florete/florete/tests/docs/commands"
)

// TestCommands checks that every command has help, from which docs/reference/florctl.md is made,
// and that pages call florctl with commands and flags that exist.
func TestCommands(t *testing.T) {
	commands.Test(t, newRoot, `For operators: every command of florctl, which you run on your own machine, with the flake of
the cluster. FLAKE is a directory or a reference of a flake; the default is the current directory.
The guides in *How-to* show the commands at work.

The same text is in `+"`florctl COMMAND --help`"+` and in the manual pages, such as
florctl-publish(1). The Nix package installs these; elsewhere, `+"`florctl man DIR`"+` writes them to a directory.`)
}
