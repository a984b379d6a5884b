package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
)

// TestHelp: every command has an example, whose flags there are, and is in a group of the help.
func TestHelp(t *testing.T) {
	root := &cobra.Command{Use: "flor-provider"}
	addCommands(root, &target{})
	for _, lacks := range terminal.LackingHelp(root) {
		t.Error(lacks)
	}
}
