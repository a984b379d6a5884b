package main

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/spf13/cobra"

	"github.com/florete/florete/providers/auditview"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
)

// auditPage is the number of audit rows that are in memory at the same time.
const auditPage = 1000

// auditCmd returns the command that prints the audit logs of this host's provider processes. The
// processes may run meanwhile. The command also works on hosts that do not provide documents and
// therefore have no operators' API.
func auditCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Print the audit log of this host",
		Long: `Print the audit log of the providers on this host, oldest row first. Run this command as root on
a provider host. A row says which request a provider granted or refused, what it changed, or
which policy came into force. The command changes nothing. To read the logs of all provider
hosts from your own machine, run florctl audit.

To read a long log in parts, pass --limit. For the next part, pass the time of the last row to
--after.

The log of each provider is tamper-evident. To find rows that were edited or removed, pass
--verify.`,
	}
	var f auditview.Filter
	f.Flags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print each row as a JSON object on a line of its own")
	how := auditview.Modes(cmd)
	return t.withSettings("", cmd, func(cmd *cobra.Command, s *settings.Settings) error {
		dbs, err := t.existing(cmd.Context(), s)
		if err != nil {
			return err
		}
		var logs []iter.Seq2[auditview.Row, error]
		var sources []tlog.Source
		for _, db := range dbs {
			defer db.Close()
			logs = append(logs, readLog(cmd.Context(), db, f.After))
			sources = append(sources, db.auditLog(s))
		}
		if how.Any() {
			return how.Run(cmd, sources, &f, *asJSON)
		}
		return auditview.Print(cmd.OutOrStdout(), f.Rows(auditview.Merge(logs)), *asJSON)
	})
}

// auditLog returns the audit log of a process, whether or not the process runs.
func (k kindState) auditLog(s *settings.Settings) tlog.Local {
	return tlog.NewLocal(logPath(s.Dir(k.kind)), k, server.AuditPrefix, s.Retention.Rows)
}

// readLog yields the audit rows in a store that are newer than the given time.
func readLog(ctx context.Context, db store.Store, since auditview.Moment) iter.Seq2[auditview.Row, error] {
	return auditview.Read("", func(after string) (rows []json.RawMessage, next string, err error) {
		if after == "" && !since.IsZero() {
			after = server.AuditAfter(since.Time)
		}
		entries, err := db.Page(ctx, server.AuditPrefix, after, auditPage)
		for _, e := range entries {
			rows, next = append(rows, e.Value), e.Key
		}
		if len(entries) < auditPage {
			next = ""
		}
		return rows, next, err
	})
}
