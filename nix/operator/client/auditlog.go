package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/auditview"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/tlog"
)

// AuditLog is an audit log on a provider host. Each kind of need has its own log. AuditLog
// implements tlog.Source.
type AuditLog struct {
	*Provider
	kind string
}

// AuditLogs returns the audit logs that can be read through the provider. Over SSH, these are the
// logs of all kinds of need on its host. Through the forwarder, it is only the log of the kind
// "config".
func (p *Provider) AuditLogs(ctx context.Context) (all []AuditLog, err error) {
	var found control.AuditLogs
	err = p.Get(ctx, "/v1/audit/logs", &found)
	for _, kind := range found.Kinds {
		all = append(all, AuditLog{p, kind})
	}
	return all, err
}

// Audit yields the rows of all audit logs that can be read through the provider, oldest first. It
// leaves out rows from before the time since. It ends at the first error.
func (p *Provider) Audit(ctx context.Context, since auditview.Moment) iter.Seq2[auditview.Row, error] {
	return func(yield func(auditview.Row, error) bool) {
		logs, err := p.AuditLogs(ctx)
		if err != nil {
			yield(auditview.Row{}, err)
			return
		}
		var rows []iter.Seq2[auditview.Row, error]
		for _, l := range logs {
			rows = append(rows, l.read(ctx, since))
		}
		auditview.Merge(rows)(yield)
	}
}

func (l AuditLog) read(ctx context.Context, since auditview.Moment) iter.Seq2[auditview.Row, error] {
	return auditview.Read(l.Host, func(after string) ([]json.RawMessage, string, error) {
		var page struct {
			Rows []json.RawMessage
			Next string
		}
		err := l.get(ctx, "", url.Values{"since": {since.String()}, "after": {after}}, &page)
		return page.Rows, page.Next, err
	})
}

// Head returns the newest checkpoint of the audit log.
func (l AuditLog) Head(ctx context.Context) (h tlog.Head, err error) {
	err = l.get(ctx, "/log", url.Values{}, &h)
	return h, err
}

// Rows returns a page of rows of the log, beginning at the given index. The log is read as it was
// when it had the given size, in rows.
func (l AuditLog) Rows(ctx context.Context, from, size uint64) ([]tlog.Logged, error) {
	var page control.Logged
	err := l.get(ctx, "/log/rows", url.Values{"from": {strconv.FormatUint(from, 10)}, "size": {strconv.FormatUint(size, 10)}}, &page)
	return page.Rows, err
}

// Proof returns the proof that the log contains a row. The argument row is the key of the row or
// its time. If the log does not contain the row, the error is tlog.ErrNoRow.
func (l AuditLog) Proof(ctx context.Context, row string) (proof tlog.Proof, err error) {
	err = l.get(ctx, "/log/proof", url.Values{"row": {row}}, &proof)
	if err != nil && strings.Contains(err.Error(), tlog.ErrNoRow.Error()) {
		err = tlog.ErrNoRow
	}
	return proof, err
}

func (l AuditLog) get(ctx context.Context, path string, q url.Values, v any) error {
	q.Set("kind", l.kind)
	return l.Get(ctx, "/v1/audit"+path+"?"+q.Encode(), v)
}

// RunMode verifies or follows the audit logs of all providers, or proves that one of them contains
// a row, depending on m. If some providers do not answer, it continues with the others, and returns
// an error that names those that failed.
func (p Providers) RunMode(cmd *cobra.Command, m *auditview.Mode, f *auditview.Filter, asJSON bool) error {
	var logs []tlog.Source
	var failed []error
	for _, at := range p {
		all, err := at.AuditLogs(cmd.Context())
		if err != nil {
			failed = append(failed, err)
		}
		for _, l := range all {
			logs = append(logs, l)
		}
	}
	if len(logs) == 0 {
		return errors.Join(failed...)
	}
	err := m.Run(cmd, logs, f, asJSON)
	if m.Proof != "" && err == nil { // only one log contains the row
		return nil
	}
	return errors.Join(append(failed, err)...)
}

// Unread returns the kinds of need whose audit logs cannot be read through the providers, so that a
// command can print a warning. Each kind has its own log, and through the forwarder only the log of
// the kind "config" can be read.
func (p Providers) Unread(t compile.Topology) []string {
	if p[0].OverSSH() {
		return nil
	}
	kinds := slices.Sorted(maps.Keys(t.Providers))
	return slices.DeleteFunc(kinds, func(kind string) bool {
		return kind == document.KindConfig || len(t.Providers[kind].Hosts) == 0
	})
}
