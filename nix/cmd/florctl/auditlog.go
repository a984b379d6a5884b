package main

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/providers/auditlog"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/tlog"
)

// auditLogs does what a mode is with the tamper-evident logs of providers. What is reached
// through the forwarder is verified here.
func auditLogs(cmd *cobra.Command, providers []provider, m *auditlog.Mode, f *auditlog.Filter, asJSON bool) error {
	var logs []tlog.Source
	for _, p := range providers {
		switch p := p.(type) {
		case overForwarder:
			logs = append(logs, p)
		case overSSH:
			if err := p.run(cmd.Context(), nil, cmd.OutOrStdout(), modeArgs(cmd)...); err != nil {
				return err
			}
		}
	}
	if len(logs) == 0 {
		return nil
	}
	return m.Run(cmd, logs, f, asJSON)
}

// modeArgs are the flags with which flor-provider does the same on its host.
func modeArgs(cmd *cobra.Command) []string {
	args := []string{"audit"}
	for _, name := range []string{"verify", "follow", "proof", "json", "caller", "kind", "outcome"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed {
			args = append(args, "--"+name+"="+flag.Value.String())
		}
	}
	return args
}

// Head is the newest checkpoint of the provider's log.
func (o overForwarder) Head(ctx context.Context) (h tlog.Head, err error) {
	err = o.get(ctx, "/v1/audit/log", &h)
	return h, err
}

// Rows are some of that log.
func (o overForwarder) Rows(ctx context.Context, from, size uint64) ([]tlog.Logged, error) {
	var page control.Logged
	err := o.get(ctx, "/v1/audit/log/rows?from="+strconv.FormatUint(from, 10)+"&size="+strconv.FormatUint(size, 10), &page)
	return page.Rows, err
}

// Proof is that of one of its rows.
func (o overForwarder) Proof(ctx context.Context, row string) (p tlog.Proof, err error) {
	err = o.get(ctx, "/v1/audit/log/proof?"+url.Values{"row": {row}}.Encode(), &p)
	if err != nil && strings.Contains(err.Error(), tlog.ErrNoRow.Error()) {
		err = tlog.ErrNoRow
	}
	return p, err
}
