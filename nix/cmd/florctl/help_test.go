package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/suggest"
)

// TestHelp: every command has an example, whose flags there are, and is in a group of the help.
func TestHelp(t *testing.T) {
	root := &cobra.Command{Use: "florctl"}
	addCommands(root)
	for _, lacks := range suggest.Lacking(root) {
		t.Error(lacks)
	}
}
