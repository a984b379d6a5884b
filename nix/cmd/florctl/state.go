package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
)

func newStateCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "state", Short: "Back up, restore and move what provider hosts have to remember"}
	cmd.AddCommand(newStateBackupCmd(), newStateRestoreCmd(), newStateMigrateCmd())
	return cmd
}

// providerHost adds the flags for which cluster is meant. The function it returns is one of
// its provider hosts, where the operator is root.
func providerHost(cmd *cobra.Command) func(name string, args []string) (client.Root, error) {
	from := source(cmd)
	return func(name string, args []string) (client.Root, error) {
		src, err := from(args)
		if err != nil {
			return client.Root{}, err
		}
		t, err := evaluated(cmd, src, compile.ReadTopology)
		if err != nil {
			return client.Root{}, err
		}
		return client.RootOfProvider(t, name)
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
		at, err := host(args[0], args[2:])
		if err != nil {
			return err
		}
		b, printed, err := at.Backup(cmd.Context(), args[1], cmd.OutOrStdout())
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
		f, err := client.OpenBackup(args[1])
		if err != nil {
			return err
		}
		defer f.Close()
		at, err := host(args[0], args[2:])
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
		at, err := host(args[0], args[1:])
		if err != nil {
			return err
		}
		return at.Run(cmd.Context(), nil, cmd.OutOrStdout(), "state", "migrate", "--timeout", timeout.String())
	}
	return cmd
}
