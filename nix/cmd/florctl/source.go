package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/compile"
)

// source adds the flags that say which cluster is meant. The function it returns
// gives the answer once flags and arguments are parsed.
func source(cmd *cobra.Command) func(args []string) (compile.Source, error) {
	cluster := cmd.Flags().String("cluster", "", "cluster of the flake, when it has several")
	overrides := cmd.Flags().StringArray("override-input", nil, "use another flake for an input, as `NAME=FLAKE`")
	cmd.Args = words(0, 1)
	return func(args []string) (compile.Source, error) {
		src := compile.Source{Cluster: *cluster}
		if len(args) == 1 {
			src.Flake = args[0]
		}
		for _, o := range *overrides {
			name, flake, ok := strings.Cut(o, "=")
			if !ok || name == "" || flake == "" {
				return src, fmt.Errorf("--override-input %q: want NAME=FLAKE", o)
			}
			src.Args = append(src.Args, "--override-input", name, flake)
		}
		return src, nil
	}
}

// words wants so many arguments.
func words(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch n := len(args); {
		case n < least:
			return fmt.Errorf("found too few words, want %s", cmd.UseLine())
		case n > most:
			return fmt.Errorf("found too many words, want %s", cmd.UseLine())
		}
		return nil
	}
}

// noteUnseen prints notes of files and submodules that Nix does not read, and of inputs that nothing
// pins.
func noteUnseen(ctx context.Context, src compile.Source) {
	if unseen := src.Unseen(ctx); len(unseen) > 0 {
		fmt.Fprintf(os.Stderr, "note: git does not know %s, so neither does Nix: git add it\n", strings.Join(unseen, ", "))
	}
	for _, folder := range src.Submodules(ctx) {
		fmt.Fprintf(os.Stderr, "note: %s is a submodule of git, and Nix does not read what is in it: if it is part of the cluster, keep its files in this repository, or have it as an input of the flake\n", folder)
	}
	if note := src.NoteLock(ctx); note != "" {
		fmt.Fprintln(os.Stderr, "note:", note)
	}
}
