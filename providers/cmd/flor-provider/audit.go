package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/store/sqlite"
)

// auditPage is how many rows are read at once.
const auditPage = 1000

// filter says which rows are printed. What is not set lets all pass.
type filter struct {
	since                 time.Duration
	caller, kind, outcome string
}

func (f *filter) flags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.since, "since", 0, "only what was decided within this `TIME`, such as 30m or 24h")
	cmd.Flags().StringVar(&f.caller, "caller", "", "only callers whose SPIFFE `ID` ends with this, such as node/ursula")
	cmd.Flags().StringVar(&f.kind, "kind", "", "only needs of this `KIND`")
	cmd.Flags().StringVar(&f.outcome, "outcome", "", "only this `OUTCOME`: granted, denied, invalid, transient or summed")
}

func (f *filter) match(r server.Row, now time.Time) bool {
	return (f.since == 0 || now.Sub(r.Time) <= f.since) &&
		(f.caller == "" || r.Caller == f.caller || strings.HasSuffix(r.Caller, "/"+f.caller)) &&
		(f.kind == "" || r.Kind == f.kind) &&
		(f.outcome == "" || string(r.Outcome) == f.outcome)
}

// auditCmd prints what the processes of this host decided, oldest first. It may run beside
// them.
func auditCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Print every decision, oldest first"}
	var f filter
	f.flags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "one JSON object per line")
	return t.withSettings("", cmd, func(cmd *cobra.Command, s *settings.Settings) error {
		// Reading makes no store: the process's own account has to.
		stores, err := filepath.Glob(storePath(s.Dir("*")))
		if err != nil {
			return err
		}
		if len(stores) == 0 {
			return fmt.Errorf("%s: no process has run yet, want one: systemctl start %s", storePath(s.Dir("*")), t.Unit("provider-cert.service"))
		}
		var logs [][]auditRow
		for _, store := range stores {
			rows, err := readLog(cmd.Context(), store, f)
			if err != nil {
				return err
			}
			logs = append(logs, rows)
		}
		rows := merge(logs)
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		for _, r := range rows {
			if *asJSON {
				fmt.Fprintf(cmd.OutOrStdout(), "%s\n", r.text)
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Time.Format(time.RFC3339), r.Outcome, r.Code,
				cmp.Or(r.Caller, r.Detail["account"], r.From), cmp.Or(r.Need, r.Detail["what"], r.Kind), cmp.Or(r.Message, r.counts()))
		}
		return w.Flush()
	})
}

// auditRow is a row as it was written, and when.
type auditRow struct {
	server.Row
	text     []byte
	revision int64
}

// counts are those of a sum.
func (r auditRow) counts() string {
	if r.Outcome != server.Summed {
		return ""
	}
	var all []string
	for code, n := range r.Detail {
		all = append(all, code+" "+n)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// merge makes one log of several, by time. Rows of one stay in their order.
func merge(logs [][]auditRow) (all []auditRow) {
	for {
		first := -1
		for i, l := range logs {
			if len(l) > 0 && (first < 0 || l[0].Time.Before(logs[first][0].Time)) {
				first = i
			}
		}
		if first < 0 {
			return all
		}
		all = append(all, logs[first][0])
		logs[first] = logs[first][1:]
	}
}

// readLog reads the rows of a store that pass, in the order of the revisions that made them.
func readLog(ctx context.Context, path string, f filter) (rows []auditRow, err error) {
	db, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	now := time.Now()
	for after := ""; ; {
		entries, err := db.Page(ctx, server.AuditPrefix, after, auditPage)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			r := auditRow{text: e.Value, revision: e.Created}
			if err := json.Unmarshal(e.Value, &r.Row); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Key, err)
			}
			if f.match(r.Row, now) {
				rows = append(rows, r)
			}
		}
		if len(entries) < auditPage {
			break
		}
		after = entries[len(entries)-1].Key
	}
	slices.SortStableFunc(rows, func(a, b auditRow) int { return cmp.Compare(a.revision, b.revision) })
	return rows, nil
}
