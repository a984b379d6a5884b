package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"florete/providers/server"
	"florete/providers/settings"
	"florete/providers/store"
	"florete/providers/store/sqlite"

	"github.com/spf13/cobra"
)

// auditCmd prints what this provider decided, oldest first. It may run beside the
// provider.
func auditCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Print every decision, oldest first"}
	asJSON := cmd.Flags().Bool("json", false, "one JSON object per line")
	return t.withSettings(cmd, func(cmd *cobra.Command, s *settings.Settings) error {
		// What looks does not make: the provider's own account has to.
		if _, err := os.Stat(storePath(s)); err != nil {
			return fmt.Errorf("%w: this provider has not run yet", err)
		}
		db, err := sqlite.Open(storePath(s), sqlite.Options{})
		if err != nil {
			return err
		}
		defer db.Close()
		entries, _, err := db.List(cmd.Context(), server.AuditPrefix)
		if err != nil {
			return err
		}
		slices.SortFunc(entries, func(a, b store.Entry) int { return cmp.Compare(a.Created, b.Created) })
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		for _, e := range entries {
			if *asJSON {
				fmt.Fprintf(cmd.OutOrStdout(), "%s\n", e.Value)
				continue
			}
			var r server.Row
			if err := json.Unmarshal(e.Value, &r); err != nil {
				return fmt.Errorf("%s: %w", e.Key, err)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Time.Format(time.RFC3339), r.Outcome, r.Code, r.Caller, r.Need, r.Message)
		}
		return w.Flush()
	})
}
