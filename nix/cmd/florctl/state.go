package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
)

func newStateCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "state", Short: "Back up, restore and move the state of provider hosts"}
	cmd.AddCommand(newStateBackupCmd(), newStateRestoreCmd(), newStateMigrateCmd())
	return cmd
}

// providerHost adds the flags that select a cluster. The function it returns returns one of its
// provider hosts, on which the operator is root.
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
		Short: "Back up the state of a provider host",
		Long: `Back up the state of the providers on a host to a file, over SSH as root. The providers continue
to run. If several provider hosts share a store, back up one of them. To use the backup, run
florctl state restore.

The backup contains no secrets: after a restore, providers generate new secrets. FILE appears
when the backup is complete, with mode 0600.`,
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
		Short: "Restore the state of a provider host from a backup",
		Long: `Restore the state of the providers on a host from a backup, over SSH as root:

  1. Deploy the host, so that its providers run.
  2. Run this command. If it is interrupted, run it again.
  3. Publish. Until then, providers offer no documents to hosts.

The command adds entries that the state of the host lacks. It never replaces an existing entry
with an older one. Secrets are not in the backup: hosts whose secrets are lost request new
secrets with their next report.`,
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
		Short: "Wait until a provider host has moved its state to etcd",
		Long: `Wait until a provider host has moved its state from files to the shared etcd store. Run this
command after you added the host to providers.store.from in the topology and deployed it. The
providers move their state by themselves, and answer requests meanwhile.

The command asks the host over SSH as root. You can interrupt the command and run it again.`,
	}
	host := providerHost(cmd)
	timeout := cmd.Flags().Duration("timeout", 10*time.Minute, "time after which the command gives up")
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
