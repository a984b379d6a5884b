package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/settings"
)

// withArchive is a command that runs on the versions that kind "config" has here.
func (t *target) withArchive(cmd *cobra.Command, run func(*cobra.Command, *settings.Settings, archive.Archive) error) *cobra.Command {
	return t.withSettings(config.Name, cmd, func(cmd *cobra.Command, s *settings.Settings) error {
		db, err := t.existingOf(cmd.Context(), s, config.Name)
		if err != nil {
			return err
		}
		defer db.Close()
		return run(cmd, s, archive.Archive{Store: db})
	})
}

// versionsCmd prints what was published.
func versionsCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "versions", Short: "Print the versions that were published here, newest first"}
	asJSON := cmd.Flags().Bool("json", false, "as JSON")
	return t.withArchive(cmd, func(cmd *cobra.Command, _ *settings.Settings, a archive.Archive) error {
		all, err := a.Versions(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(append([]archive.Version{}, all...))
		}
		return archive.Print(cmd.OutOrStdout(), all)
	})
}

// exportCmd prints the documents of a version.
func exportCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "export SERIAL", Short: "Print the documents of a version, as florctl publish wrote them"}
	var serial int64
	t.withArchive(cmd, func(cmd *cobra.Command, _ *settings.Settings, a archive.Archive) error {
		return a.Export(cmd.Context(), serial, cmd.OutOrStdout())
	})
	run := cmd.RunE
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if serial, err = strconv.ParseInt(args[0], 10, 64); err != nil {
			return fmt.Errorf("serial %q, want one that flor-provider versions prints", args[0])
		}
		return run(cmd, nil)
	}
	return cmd
}
