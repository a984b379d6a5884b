package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
)

// reportsCmd prints the last report of each host. It may run beside the provider.
func reportsCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reports",
		Short: "Print what hosts reported of themselves last, as JSON by host",
	}
	return t.withArchive(cmd, func(cmd *cobra.Command, _ *settings.Settings, a archive.Archive) error {
		all := map[string]json.RawMessage{}
		for after := ""; ; {
			entries, err := a.Page(cmd.Context(), server.ReportPrefix, after, auditPage)
			if err != nil {
				return err
			}
			for _, e := range entries {
				after = e.Key
				var r hostreport.Kept
				if err := json.Unmarshal(e.Value, &r); err != nil {
					return fmt.Errorf("%s: %w", e.Key, err)
				}
				if r.Sequence != 0 { // else it has orders alone
					all[strings.TrimPrefix(e.Key, server.ReportPrefix)] = e.Value
				}
			}
			if len(entries) < auditPage {
				break
			}
		}
		return json.NewEncoder(cmd.OutOrStdout()).Encode(all)
	})
}
