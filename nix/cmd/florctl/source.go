package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/published"
)

// source adds the flags that select a cluster. The function it returns must be called after flags
// and arguments are parsed.
func source(cmd *cobra.Command) func(args []string) (compile.Source, error) {
	cluster := cmd.Flags().String("cluster", "", "`NAME` of the cluster to use, if the flake has several")
	overrides := cmd.Flags().StringArray("override-input", nil, "use another flake for an input of this flake, as `NAME=FLAKE`; may be repeated")
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

// onSource makes cmd run on a flake, which may be its only argument.
func onSource(cmd *cobra.Command, run func(compile.Source) error) *cobra.Command {
	from := source(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		src, err := from(args)
		if err != nil {
			return err
		}
		return run(src)
	}
	return cmd
}

// words accepts between least and most arguments.
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

// evaluated returns the result of read for a cluster, and shows progress on a terminal meanwhile.
func evaluated[T any](cmd *cobra.Command, src compile.Source, read func(context.Context, compile.Source) (T, error)) (T, error) {
	defer terminal.Progress("evaluating the cluster")()
	return read(cmd.Context(), src)
}

// via adds the flag --via. The function it returns returns the config providers of a cluster,
// reached in that way.
func via(cmd *cobra.Command) func(compile.Topology) (published.Cluster, error) {
	cleaned(cmd)
	how := cmd.Flags().String("via", "forwarder", "`WAY` to reach the config providers: forwarder, if this machine is a host of the cluster; ssh, to log in as root@HOST")
	return func(t compile.Topology) (published.Cluster, error) {
		providers, err := client.Reach(t, *how)
		return published.Cluster{Topology: t, Providers: providers, Console: console(cmd)}, err
	}
}

// cleaned strips the output of a command of terminal control sequences, because the command may
// print text that providers or hosts sent.
func cleaned(cmd *cobra.Command) {
	cmd.SetOut(terminal.Writer(os.Stdout))
	cmd.SetErr(terminal.Writer(os.Stderr))
}

func console(cmd *cobra.Command) terminal.Console {
	return terminal.Console{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
}

// ofCluster adds the flags that select a cluster and the way to its config providers. The function
// it returns reads the cluster from the flake in args.
func ofCluster(cmd *cobra.Command) func(args []string) (published.Cluster, error) {
	from, reach := source(cmd), via(cmd)
	return func(args []string) (published.Cluster, error) {
		src, err := from(args)
		if err != nil {
			return published.Cluster{}, err
		}
		t, err := evaluated(cmd, src, compile.ReadTopology)
		if err != nil {
			return published.Cluster{}, err
		}
		return reach(t)
	}
}

// onCluster makes cmd run on a cluster, with count words that may be followed by the flake.
func onCluster(cmd *cobra.Command, count int, run func(c published.Cluster, args []string) error) *cobra.Command {
	cluster := ofCluster(cmd)
	cmd.Args = words(count, count+1)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c, err := cluster(args[count:])
		if err != nil {
			return err
		}
		return run(c, args[:count])
	}
	return cmd
}

// noteUnseen prints notes about files and submodules that Nix does not read, and about inputs that
// are not locked.
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
