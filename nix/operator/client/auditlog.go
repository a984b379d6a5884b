package client

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/auditview"
	"github.com/florete/florete/providers/tlog"
)

// AuditLogs does what a mode is with the tamper-evident logs of all providers, whatever some of them
// lack. What is reached through the forwarder is verified here.
func (p Providers) AuditLogs(cmd *cobra.Command, m *auditview.Mode, f *auditview.Filter, asJSON bool) error {
	var logs []tlog.Source
	var runs []func() error
	var one sync.Mutex
	for _, at := range p {
		if !at.OverSSH() {
			logs = append(logs, at)
			continue
		}
		runs = append(runs, func() error {
			return at.AuditProgram(cmd.Context(), &lines{one: &one, to: cmd.OutOrStdout()}, modeArgs(cmd)...)
		})
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
	var args []string
	for _, name := range []string{"verify", "follow", "proof", "json", "caller", "kind", "outcome"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed {
			args = append(args, "--"+name+"="+flag.Value.String())
		}
	}
	return args
}

// Unread returns the kinds of need whose logs are not read: each has one of its own, and through the
// forwarder that of the config providers is reached.
func (p Providers) Unread(t compile.Topology) []string {
	if p[0].OverSSH() {
		return nil
	}
	kinds := slices.Sorted(maps.Keys(t.Providers))
	return slices.DeleteFunc(kinds, func(kind string) bool {
		return kind == document.KindConfig || len(t.Providers[kind].Hosts) == 0
	})
}
