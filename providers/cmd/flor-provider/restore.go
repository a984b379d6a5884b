package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/backup"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
)

// These are the audit codes of a restore.
const (
	codeRestore = "restore"
	codeRotate  = "rotate"
)

// restoreCmd returns the command that restores the keys of a backup that are absent from the state.
// The provider processes may run meanwhile.
func restoreCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore [FILE]",
		Short: "Restore the state of this host's providers from a backup",
		Long: `Restore the state of the providers on this host from a backup, which is read from FILE or from
standard input. Run this command as root on the new provider host, or run florctl state restore
on your own machine. The providers may run meanwhile. Publish afterwards: until then, providers
offer no documents to hosts.

The command adds entries that the state of the host lacks. It never replaces an existing entry
with an older one. Secrets are not in the backup: hosts whose secrets are lost request new
secrets with their next report. If the restore is interrupted, run it again.`,
	}
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		s, err := settings.Load(t.Instance, t.settings, kinds, "")
		if err != nil {
			return err
		}
		from, name := cmd.InOrStdin(), "standard input"
		if len(args) > 0 {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			from, name = f, args[0]
		}
		r, err := t.restoring(cmd.Context(), s, from)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer func() { err = errors.Join(err, r.close()) }()
		return r.restore(cmd.Context(), cmd.OutOrStdout())
	}
	return cmd
}

// restoration restores a verified backup into the states of this host.
type restoration struct {
	state
	target *target
	*backup.Backup
	file   *os.File
	states []kindState
}

func (t *target) restoring(ctx context.Context, s *settings.Settings, from io.Reader) (r *restoration, err error) {
	policy, err := readPolicy(s)
	if err != nil {
		return nil, err
	}
	st, err := t.stateOf(s)
	if err != nil {
		return nil, err
	}
	r = &restoration{state: st, target: t}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.file, err = spooled(from, s.State); err != nil {
		return r, err
	}
	if r.Backup, err = backup.Read(r.file); err != nil {
		return r, err
	}
	if r.TrustDomain != policy.TrustDomain {
		return r, fmt.Errorf("the state of %s in trust domain %s, this host is of %s: restore it there", r.Host, r.TrustDomain, policy.TrustDomain)
	}
	for _, section := range r.Sections {
		if _, runs := policy.Provider[section.Kind]; !runs {
			continue
		}
		db, err := t.existingOf(ctx, s, section.Kind)
		if err != nil {
			return r, fmt.Errorf("kind %q: %w", section.Kind, err)
		}
		r.states = append(r.states, kindState{db, section.Kind})
	}
	if len(r.states) == 0 {
		return r, fmt.Errorf("the state of %s, none of whose kinds of need this host provides: name it in providers.KIND.hosts first", r.Host)
	}
	return r, nil
}

func (r *restoration) close() (err error) {
	for _, db := range r.states {
		err = errors.Join(err, db.Close())
	}
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

func (r *restoration) restore(ctx context.Context, out io.Writer) error {
	for _, db := range r.states {
		var put, stay int
		restore := func(ctx context.Context, cond ...store.Cond) (err error) {
			st := stateOf(db.kind)
			row := r.row(db.kind, codeRestore, "the state of %s at %s is put back where it is absent", r.Backup.Host, r.Time.Format(time.RFC3339))
			if _, err := db.Commit(ctx, store.Txn{If: cond, Then: []store.Op{tlog.Restoring(row.Time), row.Op()}}); err != nil {
				return err
			}
			put, stay, err = backup.Restoring{Remembers: st.Remembers, Restored: st.Restored, If: cond}.Restore(ctx, db, r.Keys(db.kind))
			if err != nil {
				return err
			}
			row = r.row(db.kind, codeRestore, "the state of %s at %s is back", r.Backup.Host, r.Time.Format(time.RFC3339))
			row.Detail["put"], row.Detail["stayed"] = strconv.Itoa(put), strconv.Itoa(stay)
			_, err = db.Commit(ctx, store.Txn{If: cond, Then: []store.Op{row.Op()}})
			return err
		}
		var err error
		if db.kind == distribution.Name {
			err = archive.Archive{Store: db}.Exclude(ctx, func(ctx context.Context, c store.Cond) error { return restore(ctx, c) })
		} else {
			err = restore(ctx)
		}
		if err != nil {
			return fmt.Errorf("kind %q: %w", db.kind, err)
		}
		fmt.Fprintf(out, "%s: %d entries put back, %d stay as they are\n", db.kind, put, stay)
	}
	for _, section := range r.Sections {
		if !slices.ContainsFunc(r.states, func(db kindState) bool { return db.kind == section.Kind }) {
			fmt.Fprintf(out, "%s: left out, this host does not provide it\n", section.Kind)
		}
	}
	if err := r.order(ctx, out); err != nil {
		return err
	}
	if slices.ContainsFunc(r.states, func(db kindState) bool { return db.kind == distribution.Name }) {
		_, err := archive.Archive{Store: r.of(distribution.Name)}.Newest(ctx)
		if errors.Is(err, archive.ErrNone) {
			fmt.Fprintln(out, "hosts are offered no documents until they are published: florctl publish")
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (r *restoration) row(kind, code, message string, args ...any) server.Row {
	return server.Row{Time: time.Now().UTC(), Kind: kind, Outcome: server.Changed, Code: code, Message: fmt.Sprintf(message, args...),
		Detail: map[string]string{"backup": r.Digest}}
}

// of returns the state of a kind. It returns nil if the kind is not restored.
func (r *restoration) of(kind string) store.Store {
	for _, db := range r.states {
		if db.kind == kind {
			return db
		}
	}
	return nil
}

// order tells hosts to replace the secrets that no state on this provider has issued. These secrets
// cannot be restored, because their sealing key is lost.
func (r *restoration) order(ctx context.Context, out io.Writer) error {
	orders := map[string][]string{}
	for _, g := range r.policy.Grants {
		db := r.of(g.Kind)
		if db == nil || !stateOf(g.Kind).Secrets {
			continue
		}
		answered, err := server.Answered(ctx, db, g.Caller, g.Need)
		if err != nil {
			return err
		}
		if !answered {
			orders[g.Caller.Name()] = append(orders[g.Caller.Name()], g.Need)
		}
	}
	if len(orders) == 0 {
		return nil
	}
	at := r.of(distribution.Name)
	if _, here := r.policy.Provider[distribution.Name]; here && at == nil {
		db, err := r.target.existingOf(ctx, r.Settings, distribution.Name)
		if err != nil {
			return err
		}
		defer db.Close()
		at = db
	}
	for _, host := range slices.Sorted(maps.Keys(orders)) {
		for _, need := range orders[host] {
			if at == nil {
				fmt.Fprintf(out, "%s: has a secret that is not known here: florctl rotate %[1]s %s\n", host, need)
				continue
			}
			row := r.row(distribution.Name, codeRotate, "the next rotation of need %s is ordered of host %s, whose secret is not known since the state was restored", need, host)
			row.Need = need
			next := func(hostreport.Kept) (int, server.Row, error) { return hostreport.NextRotation, row, nil }
			if err := control.Order(ctx, at, host, need, next); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: another secret for %s is ordered, with the answer to its next report\n", host, need)
		}
	}
	return nil
}
