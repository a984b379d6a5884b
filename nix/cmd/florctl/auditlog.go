package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/florete/florete/providers/auditlog"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/tlog"
)

// auditLogs does what a mode is with the tamper-evident logs of all providers, whatever some of them
// lack. What is reached through the forwarder is verified here.
func auditLogs(cmd *cobra.Command, providers []provider, m *auditlog.Mode, f *auditlog.Filter, asJSON bool) error {
	var logs []tlog.Source
	var runs []func() error
	var one sync.Mutex
	for _, p := range providers {
		switch p := p.(type) {
		case overForwarder:
			logs = append(logs, p)
		case overSSH:
			runs = append(runs, func() error {
				return p.run(cmd.Context(), nil, &lines{one: &one, to: cmd.OutOrStdout()}, modeArgs(cmd)...)
			})
		}
	}
	if len(logs) > 0 {
		runs = append(runs, func() error { return m.Run(cmd, logs, f, asJSON) })
	}
	var g errgroup.Group
	if !m.Follow { // the others print several lines that belong together
		g.SetLimit(1)
	}
	errs := make([]error, len(runs))
	for i, run := range runs {
		g.Go(func() error { errs[i] = run(); return nil })
	}
	_ = g.Wait()
	if m.Proof != "" && slices.Contains(errs, nil) { // a row is in one log
		return nil
	}
	return errors.Join(errs...)
}

// lines passes on whole lines, so that those of several writers are not mixed.
type lines struct {
	one  *sync.Mutex
	to   io.Writer
	rest []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 {
		return len(b), nil
	}
	l.one.Lock()
	defer l.one.Unlock()
	_, err := l.to.Write(l.rest[:end])
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return len(b), err
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
