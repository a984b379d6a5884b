package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/auditview"
	"github.com/florete/florete/providers/server"
)

func newAuditCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit [FLAKE]",
		Short: "Print what config providers decided, oldest first",
		Long: `Print what config providers decided, oldest first: who fetched and reported, who
published, rolled back and rotated, from where. Over ssh it is what all providers on
those hosts decided, as flor-provider audit prints there.

Rows of the same minute that differ in their time alone are one line; --json has each. They are in a
tamper-evident log of their provider: --verify builds that anew from the rows,
and names those that were edited or removed, whatever the provider says of how long it keeps
them; --proof proves that it has one.`,
	}
	var f auditview.Filter
	f.Flags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "one JSON object per line")
	how := auditview.Modes(cmd)
	keep := cmd.Flags().Int("keep", 0, "with --verify, for how many `DAYS` providers keep rows: retention.audit of their provider.hujson, 365 unless written")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		if unread := c.Providers.Unread(c.Topology); len(unread) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "not read: the logs of kinds %s: with --via ssh\n", strings.Join(unread, ", "))
		}
		if *keep < 0 {
			return fmt.Errorf("--keep %d: want at least 1", *keep)
		}
		how.Kept = server.Retention{Audit: server.Number(*keep)}.Rows(time.Now())
		if how.Any() {
			return c.Providers.RunMode(cmd, how, &f, *asJSON)
		}
		log, end := c.Providers.Audit(cmd.Context(), f.After)
		if err := auditview.Print(cmd.OutOrStdout(), f.Rows(log), *asJSON); err != nil {
			return err
		}
		return end()
	})
}
