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
		Short: "Print the audit log",
		Long: `Print the audit log, in which providers record their decisions, oldest first. A row says who
requested what, when and from which address, and whether the provider granted it. The command
changes nothing.

By default, the command reads the logs of the config providers through the forwarder of this
machine. With --via ssh, it reads the logs of all kinds of need on the same hosts.

Rows of one minute that differ only in their time are printed as one line. To print each row,
pass --json.

The log is tamper-evident. To find rows that were edited or removed, pass --verify. To prove
that the log contains a row, pass --proof.`,
	}
	var f auditview.Filter
	f.Flags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print each row as a JSON object on a line of its own")
	how := auditview.Modes(cmd)
	keep := cmd.Flags().Int("keep", 0, "number of `DAYS` that providers keep rows, for --verify: retention.audit of their provider.hujson (default 365)")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		if unread := c.Providers.Unread(c.Topology); len(unread) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: the logs of kinds %s are not shown: to read them, pass --via ssh\n", strings.Join(unread, ", "))
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
