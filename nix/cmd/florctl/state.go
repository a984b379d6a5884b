package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/backup"
)

func newStateCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "state", Short: "Back up, restore and move what provider hosts have to remember"}
	cmd.AddCommand(newStateBackupCmd(), newStateRestoreCmd(), newStateMigrateCmd())
	return cmd
}

// providerHost adds the flags for which cluster is meant. The function it returns is one of
// its provider hosts, where the operator is root.
func providerHost(cmd *cobra.Command) func(ctx context.Context, name string, args []string) (client.Root, error) {
	from := source(cmd)
	return func(ctx context.Context, name string, args []string) (client.Root, error) {
		src, err := from(args)
		if err != nil {
			return client.Root{}, err
		}
		t, err := evaluated(cmd, src, compile.ReadTopology)
		if err != nil {
			return client.Root{}, err
		}
		for _, p := range t.Providers {
			if slices.Contains(p.Hosts, name) {
				return client.RootOf(t, name), nil
			}
		}
		return client.Root{}, fmt.Errorf("cluster %s: host %q provides nothing: want one of providers.KIND.hosts", t.Name, name)
	}
}

func newStateBackupCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup HOST FILE [FLAKE]",
		Short: "Write what a provider host has to remember to a file, over SSH",
		Long: `Write what the processes of a provider host have to remember to a file, over SSH as root.
They go on meanwhile. The file is its owner's alone, and there when it is whole. It holds no
secret: what hosts and people have of those is made anew. Where provider hosts share a store,
one of them has all of it.`,
	}
	host := providerHost(cmd)
	cmd.Args = words(2, 3)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		at, err := host(cmd.Context(), args[0], args[2:])
		if err != nil {
			return err
		}
		var b *backup.Backup
		printed, err := atomicfile.Output(args[1], 0o600, cmd.OutOrStdout(), func(f *os.File) (err error) {
			if err = at.Run(cmd.Context(), nil, f, "state", "backup"); err == nil {
				b, err = backup.Read(f)
			}
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(apart(cmd, printed), "%s: %d entries of %d kinds of need of %s\n", args[1], b.Entries, len(b.Sections), b.Host)
		return nil
	}
	return cmd
}

func newStateRestoreCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore HOST FILE [FLAKE]",
		Short: "Put back what a provider host lacks of a backup, over SSH",
		Long: `Put back what the processes of a provider host lack of a backup, over SSH as root. They run:
deploy the host first. What is there stays as it is, so what was replaced since does not come
back. Hosts whose secrets are not known there any more request others with their next report.
What was published is offered to nobody until it is published again.

Interrupted, it is completed by another.`,
	}
	host := providerHost(cmd)
	cmd.Args = words(2, 3)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := os.Open(args[1])
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := backup.Read(f); err != nil {
			return fmt.Errorf("%s: %w", args[1], err)
		}
		if _, err := f.Seek(0, 0); err != nil {
			return err
		}
		at, err := host(cmd.Context(), args[0], args[2:])
		if err != nil {
			return err
		}
		return at.Run(cmd.Context(), f, cmd.OutOrStdout(), "state", "restore")
	}
	return cmd
}

func newStateMigrateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate HOST [FLAKE]",
		Short: "Wait until the state of a provider host is in the store that its cluster shares",
		Long: `Wait until the state that a provider host had in files is in the store that the provider
hosts of its cluster share, over SSH as root. The host has been deployed with providers.store,
whose from names it: its processes move the state themselves, while they serve.`,
	}
	host := providerHost(cmd)
	timeout := cmd.Flags().Duration("timeout", 10*time.Minute, "how long at most")
	cmd.Args = words(1, 2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		at, err := host(cmd.Context(), args[0], args[1:])
		if err != nil {
			return err
		}
		return at.Run(cmd.Context(), nil, cmd.OutOrStdout(), "state", "migrate", "--timeout", timeout.String())
	}
	return cmd
}
