package database

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

const sweepEvery = time.Minute

// Codes of what is done without a request, in the audit log.
const (
	CodeDisabled = "database-disabled"
	CodeDropped  = "database-dropped"
)

// Run ends logins whose time is over, and databases that no policy names.
func (d *Databases) Run(ctx context.Context, ready func()) error {
	ready() // hosts wait for nothing of that
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for last := ""; ; {
		if p := d.Policy(); p != nil {
			err := d.sweep(ctx, time.Now(), p)
			if err != nil && ctx.Err() == nil && err.Error() != last {
				last = err.Error()
				d.Logger.Error("what is over at database servers goes on until the next try", "error", err)
			}
			if err == nil {
				last = ""
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sweep does at servers what is due without a request. One that fails holds up no other.
func (d *Databases) sweep(ctx context.Context, now time.Time, p *Policy) error {
	var failed []error
	for after := ""; ; {
		entries, err := d.db.Page(ctx, databases, after, store.MaxOps)
		if err != nil {
			return err
		}
		for _, e := range entries {
			after = e.Key
			key := strings.TrimPrefix(e.Key, databases)
			if err := d.over(ctx, now, key, p); err != nil {
				failed = append(failed, fmt.Errorf("database %s: %w", key, err))
			}
		}
		if len(entries) < store.MaxOps {
			return errors.Join(failed...)
		}
	}
}

// over does what is due for one database.
func (d *Databases) over(ctx context.Context, now time.Time, key string, p *Policy) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	done, err := d.turns.take(ctx, key)
	if err != nil {
		return err
	}
	defer done()
	r, err := d.read(ctx, key)
	if err != nil {
		return err
	}
	var of spec
	of.Server, of.Name, _ = strings.Cut(key, "/")
	want, named := p.specs[key]
	s, there := p.Servers[of.Server]
	switch {
	case named && r.Unnamed == 0 && (len(r.Logins) < 2 || r.Logins[0].Since == 0 || now.Unix() < r.Logins[0].Since+want.Overlap):
		return nil
	case named:
		return d.at(ctx, s, of, func(b backend) error {
			_, err := d.settle(ctx, b, now, want)
			return err
		})
	case !there:
		return errors.New("no policy names it any more, nor its server, where it stays as it is")
	case r.Unnamed != 0 && now.Unix()-r.Unnamed <= s.Keep:
		return nil
	case r.Unnamed == 0:
		row := act(now, of, CodeDisabled, fmt.Sprintf("no policy names database %s of server %s any more: nobody logs in there, and it is dropped after %s", of.Name, of.Server, time.Duration(s.Keep)*time.Second))
		if err := d.at(ctx, s, of, func(b backend) error { return b.set(ctx, of.Name, nil) }); err != nil {
			return err
		}
		r.Unnamed = now.Unix()
		if _, err := d.write(ctx, key, r, row.Op()); err != nil {
			return err
		}
		row.Log(ctx, d.Logger)
		return nil
	default:
		row := act(now, of, CodeDropped, fmt.Sprintf("no policy has named database %s of server %s for long enough: it is dropped", of.Name, of.Server))
		if err := d.at(ctx, s, of, func(b backend) error { return b.drop(ctx, of.Name) }); err != nil {
			return err
		}
		if err := d.forget(ctx, key, r, row.Op()); err != nil {
			return err
		}
		row.Log(ctx, d.Logger)
		return nil
	}
}

// act is the row of what was done at a server without a request. Where it is not kept, since the
// process died, the next sweep does the same again, and keeps it then.
func act(now time.Time, of spec, code, message string) server.Row {
	return server.Row{Time: now.UTC(), Kind: Name, Outcome: server.Changed, Code: code, Message: message, Detail: map[string]string{"database": of.Name, "server": of.Server}}
}

// at works at the server of a database.
func (d *Databases) at(ctx context.Context, s Server, of spec, work func(b backend) error) error {
	b, err := d.open(ctx, s, of)
	if err != nil {
		return err
	}
	defer b.close()
	return work(b)
}

// forget removes what is kept of a database, but for a row.
func (d *Databases) forget(ctx context.Context, key string, r record, row store.Op) error {
	_, err := d.db.Commit(ctx, store.Txn{
		If:   []store.Cond{{Key: databases + key, Modified: r.modified}},
		Then: []store.Op{store.Delete(databases + key), store.Delete(passwords + key), row},
	})
	return err
}
