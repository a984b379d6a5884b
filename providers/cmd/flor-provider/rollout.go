package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
)

// rolloutCmd prints how the rollout stands, or changes it.
func rolloutCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "rollout status|pause|resume|abort", Short: "Print how the rollout at work, or the last, stands; pause, resume or abort it",
		ValidArgs: []string{"status", string(advance.Pause), string(advance.Resume), string(advance.Abort)}}
	asJSON := cmd.Flags().Bool("json", false, "as JSON")
	var verb string
	t.withArchive(cmd, func(cmd *cobra.Command, _ *settings.Settings, a archive.Archive) error {
		if verb != "status" {
			by, err := nss.Current()
			if err != nil {
				return err
			}
			row := server.Row{Time: time.Now().UTC(), Caller: "the account " + by.Username + " of this host", Kind: config.Name}
			if _, _, err := advance.Do(cmd.Context(), a, advance.Act(verb), row); err != nil {
				return err
			}
		}
		s, err := advance.StatusOf(cmd.Context(), a)
		switch {
		case err != nil:
			return err
		case *asJSON:
			return json.NewEncoder(cmd.OutOrStdout()).Encode(s)
		}
		return s.Print(cmd.OutOrStdout())
	})
	run := cmd.RunE
	cmd.Args = cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		verb = args[0]
		if err := run(cmd, nil); err != nil {
			return fmt.Errorf("rollout %s: %w", strings.Join(args, " "), err)
		}
		return nil
	}
	return cmd
}
