package main

import (
	"florete/providers/settings"

	"github.com/spf13/cobra"
)

// withSettings is a command that runs on the settings file.
func withSettings(cmd *cobra.Command, run func(*cobra.Command, *settings.Settings) error) *cobra.Command {
	path := cmd.Flags().String("settings", "/etc/florete/provider.hujson", "settings `FILE`, HuJSON")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := settings.Load(*path)
		if err != nil {
			return err
		}
		return run(cmd, s)
	}
	return cmd
}
