// Package database implements the kind of need that gives a service a database, and a login for it,
// at a database server of the cluster:
//
//	POST /database/request {"server":"postgres","name":"wiki_main","rotate":2592000,"overlap":3600}
//	→ {"host":"postgres.demo.flor.rete","port":"5432","database":"wiki_main","user":"wiki_main.a","password":"…","url":"postgresql://…","generation":"1"}
//
// The provider logs in at the server with a role of its own, and makes the objects that are
// missing. A rotation makes the next login beside the login in use. The former login keeps working
// for the overlap:
//
//	PostgreSQL   two roles that log in and act as a third, which owns the database and all in it
//	Redis        one ACL user with two passwords, for keys and channels that start with its name
//
// Package serveraccount decides when a login is made, kept and ended.
package database

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/providers/store"
)

// Name is the name of the kind.
const Name = "database"

// These are the audit codes of changes that the provider makes without a request.
const (
	CodeDisabled = "database-disabled"
	CodeDropped  = "database-dropped"
	CodeRestored = "database-restored"
)

// Settings is the kind's section of the settings file.
type Settings struct {
	// Passwords is the directory of the passwords with which the provider logs in at servers. It
	// contains a file for each server, named after the server. The default is "passwords" beside
	// the state. If a server has no file, the provider presents no password.
	Passwords string `json:"passwords" path:""`
}

// State returns the keys in the state store that belong in a backup: the names of existing
// databases. Logins are left out, because they are secrets, and are created again after a restore.
func (*Settings) State() server.State {
	return serveraccount.State(Name)
}

// Kind returns the kind "database" for a provider process.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	return server.Any(New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[serveraccount.Policy[Request]](p.Policies), Logger: p.Logger,
		Dir: cmp.Or(s.Passwords, filepath.Join(p.Dir, "passwords")),
	}))
}

// Config configures the kind "database".
type Config = serveraccount.Config[Request]

// Databases implements the kind "database". It creates databases at the cluster's database servers,
// and creates the logins with which services use them.
type Databases struct {
	*serveraccount.Accounts[Request, backend]
	down sync.Map // server → time of the sweep in which it did not answer
}

var (
	_ server.Kind[*serveraccount.Policy[Request]] = (*Databases)(nil)
	_ server.Runner                               = (*Databases)(nil)
	_ server.Sealer                               = (*Databases)(nil)
)

// New returns the kind "database" with a configuration.
func New(c Config) *Databases {
	d := &Databases{}
	d.Accounts = serveraccount.New(c, serveraccount.Kind[Request, backend]{
		Name: Name, Account: "database", Server: "server", Secrets: "passwords", Drops: true,
		Open: backends, Answer: d.answer, Renew: d.renew, End: d.end,
	})
	return d
}

// answer returns the login that is in use. It first ensures that the server accepts the login.
func (d *Databases) answer(ctx context.Context, b backend, now time.Time, s serveraccount.Server, want Request) (server.Decision, error) {
	r, err := d.settle(ctx, b, now, want)
	if err != nil {
		return server.Decision{}, err
	}
	current := &r.Logins[0]
	decision := server.Decision{If: []store.Cond{d.Is(want.Of(), &r)}}
	if current.Since == 0 {
		current.Since = now.Unix()
		decision.Then = []store.Op{d.Put(want.Of(), &r)}
	}
	decision.Repeated = r.until(now, want)
	user := b.user(want.Name, current.Slot)
	decision.Answer.Values = values(s, want.Name, user, r.Secrets[current.Slot])
	decision.Detail = map[string]string{
		"user": user, "generation": fmt.Sprint(current.Generation), "made": unixtime.Unix(current.Made).Format(time.RFC3339),
	}
	return decision, nil
}

// settle makes the server accept exactly the logins of a database that are due now. The logins are
// stored before the server accepts them. If another process has changed the record meanwhile,
// settle starts again.
func (d *Databases) settle(ctx context.Context, b backend, now time.Time, want Request) (r record, err error) {
	for range 4 {
		r, err = d.due(ctx, b, now, want)
		if err != nil {
			return r, err
		}
		if err = b.set(ctx, want.Name, r.credentials()); err != nil {
			return r, err
		}
		var again record
		if err := d.Read(ctx, want.Of(), &again); err != nil {
			return r, err
		}
		// The end of one login may be followed by the beginning of the next.
		if again.Modified == r.Modified {
			if _, due, _ := again.next(now, want, nil); !due {
				return r, nil
			}
		}
	}
	return r, fmt.Errorf("database %s: other processes change it all the time", want.Of())
}

// renew ends a former login whose time is over. It enables the logins of a database again if
// policies name the database again after a time in which they did not. If the server has lost a
// login, renew makes the login again with the password that hosts have.
func (d *Databases) renew(ctx context.Context, now time.Time, s serveraccount.Server, want Request) error {
	var r record
	err := d.Read(ctx, want.Of(), &r)
	if err != nil {
		return err
	}
	lost := false
	if r.Unnamed == 0 && (len(r.Logins) < 2 || r.Logins[0].Since == 0 || r.Logins[0].overlaps(now, want)) {
		if lost, err = d.lost(ctx, now, s, want, r); err != nil || !lost {
			return err
		}
	}
	return d.AtSame(ctx, s, want.Of(), &r, func(ctx context.Context, b backend) error {
		r, err := d.settle(ctx, b, now, want)
		if err != nil || !lost {
			return err
		}
		return d.Write(ctx, want.Of(), &r, d.Done(now, want.Of(), CodeRestored,
			fmt.Sprintf("server %s had lost logins of database %s, or the database: they are made anew, data is not", want.Server, want.Name)))
	})
}

// lookWithin is the longest time that checking one server may take, because checks of other servers
// wait meanwhile.
const lookWithin = 5 * time.Second

// lost reports whether the server lacks a database or login that the provider made. It does not
// wait for its turn, because it changes nothing. A server that does not answer is tried once in
// each sweep.
func (d *Databases) lost(ctx context.Context, now time.Time, s serveraccount.Server, want Request, r record) (bool, error) {
	if at, ok := d.down.Load(want.Server); ok && now.Equal(at.(time.Time)) {
		return false, nil
	}
	for _, l := range r.Logins {
		if r.Secrets[l.Slot] == "" { // of a state that was restored: the next request makes another
			return false, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	var works bool
	err := d.Look(ctx, s, want.Of(), func(b backend) (err error) {
		works, err = b.works(ctx, want.Name, r.credentials())
		return err
	})
	if err != nil {
		d.down.Store(want.Server, now)
		return false, err
	}
	return len(r.Logins) > 0 && !works, nil
}

// end disables all logins of a database. It drops the database after the time that its server keeps
// unused databases.
func (d *Databases) end(ctx context.Context, now time.Time, s serveraccount.Server, of serveraccount.Name) error {
	var r record
	err := d.Read(ctx, of, &r)
	if err != nil || r.Unnamed != 0 && now.Unix()-r.Unnamed <= s.Keep {
		return err
	}
	return d.AtSame(ctx, s, of, &r, func(ctx context.Context, b backend) error {
		if r.Unnamed != 0 {
			if err := b.drop(ctx, of.Account); err != nil {
				return err
			}
			return d.Forget(ctx, of, &r, d.Done(now, of, CodeDropped,
				fmt.Sprintf("no policy has named database %s of server %s for long enough: it is dropped", of.Account, of.Server)))
		}
		if err := b.set(ctx, of.Account, nil); err != nil {
			return err
		}
		r.Unnamed = now.Unix()
		return d.Write(ctx, of, &r, d.Done(now, of, CodeDisabled,
			fmt.Sprintf("no policy names database %s of server %s any more: nobody logs in there, and it is dropped after %s", of.Account, of.Server, time.Duration(s.Keep)*time.Second)))
	})
}
