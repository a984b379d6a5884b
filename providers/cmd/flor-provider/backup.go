package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/backup"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
)

func stateCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "state", Short: "Back up, restore and move the state of this host's providers"}
	cmd.AddCommand(backupCmd(t), restoreCmd(t), migrateCmd(t))
	return cmd
}

// backupCmd returns the command that writes a backup of this host's state. The provider processes
// may run meanwhile.
func backupCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Back up the state of this host's providers",
		Long: `Back up the state of the providers on this host, to FILE or to standard output. Run this command
as root on a provider host, or run florctl state backup on your own machine. The providers
continue to run. To use the backup, run flor-provider state restore.

The backup contains the state of each kind of need at one moment. It does not contain:

  - secrets: after a restore, providers generate new secrets
  - the issuing key of the provider of kind cert: back up this key separately

FILE appears when the backup is complete, with mode 0600.`,
	}
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := settings.Load(t.Instance, t.settings, kinds, "")
		if err != nil {
			return err
		}
		policy, err := readPolicy(s)
		if err != nil {
			return err
		}
		states, err := t.existing(cmd.Context(), s)
		if err != nil {
			return err
		}
		var sources []backup.Source
		for _, db := range states {
			defer db.Close()
			sources = append(sources, backup.Source{Kind: db.kind, Store: db, Remembers: stateOf(db.kind).Remembers})
		}
		header := backup.Header{TrustDomain: policy.TrustDomain, Host: policy.Host, Time: unixtime.Of(time.Now().UTC())}
		if len(args) == 0 || args[0] == atomicfile.Stdout {
			_, err := backup.Write(cmd.Context(), cmd.OutOrStdout(), header, sources)
			return err
		}
		n := 0
		printed, err := atomicfile.Output(args[0], 0o600, cmd.OutOrStdout(), func(f *os.File) (err error) {
			n, err = backup.Write(cmd.Context(), f, header, sources)
			return err
		})
		if err == nil {
			out := cmd.OutOrStdout()
			if printed {
				out = cmd.ErrOrStderr()
			}
			fmt.Fprintf(out, "%s: %d entries of %d kinds of need\n", args[0], n, len(sources))
		}
		return err
	}
	return cmd
}

// stateOf returns the description of a kind's keys for backups.
func stateOf(kind string) server.State { return server.StateOf(section(kind)) }

// spooled copies its input to a temporary file, so that the content can be verified and then read
// again. The file is removed when it is closed.
func spooled(in io.Reader, dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".restore-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = io.Copy(f, bufio.NewReader(in))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
