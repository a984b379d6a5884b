// Package database is the kind of need whose answer is a login at a database server of the
// cluster, and the database that it is for:
//
//	POST /database/request {"server":"postgres","name":"wiki_main","rotate":2592000,"overlap":3600}
//	→ {"host":"postgres.demo.flor.rete","port":"5432","database":"wiki_main","user":"wiki_main.a","password":"…","url":"postgresql://…","generation":"1"}
//
// The provider logs in there as a role of its own and makes what is missing. At a rotation the
// next login is made beside the one in use, which works on for the overlap:
//
//	PostgreSQL   two roles that log in, and act as a third, which owns the database and all in it
//	Redis        one ACL user with two passwords, for keys and channels that start with its name
//
// A login is decided and kept in the store, its password sealed, before the server has it, and
// is at the server before a host has it. So whatever dies between two of these steps, the next
// request goes on from there.
package database

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/seal"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name of the kind.
const Name = "database"

const (
	// repeated is how long the same request has the recorded answer.
	repeated = 30 * time.Second

	// deadline is of all that one request does at a server: less than a host waits.
	deadline = 15 * time.Second
)

// Settings are the kind's section of the settings file.
type Settings struct {
	// Passwords is the directory of those that the provider logs in with, a file for each
	// server, named as it is: "passwords" beside the state, unless written. A server that has
	// none there accepts the provider's account, or anybody.
	Passwords string `json:"passwords" path:""`
}

// State is which databases there are. Their logins are sealed, and made anew.
func (*Settings) State() server.State { return server.State{Remembered: []string{databases}} }

// Kind makes the kind.
func (s *Settings) Kind(p server.Process) server.Kind {
	return New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), Logger: p.Logger,
		Passwords: cmp.Or(s.Passwords, filepath.Join(p.Dir, "passwords")),
	})
}

// Config of the kind. All fields are needed, the last two for Run alone.
type Config struct {
	Store     store.Store
	Key       *seal.Key
	Passwords string

	// Policy is the one in force, nil while that does not run this kind.
	Policy func() *Policy
	Logger *slog.Logger
}

// Databases is the kind "database".
type Databases struct {
	records
	Config
	turns turns
}

var (
	_ server.Answerer = (*Databases)(nil)
	_ server.Runner   = (*Databases)(nil)
	_ server.Sealer   = (*Databases)(nil)
)

// New makes the kind.
func New(c Config) *Databases { return &Databases{records: records{c.Store, c.Key}, Config: c} }

// Name of the kind.
func (d *Databases) Name() string { return Name }

// Answer answers with the login in use, once it works at the server.
func (d *Databases) Answer(ctx context.Context, c server.Call) (server.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	p := c.Compiled.(*Policy)
	request := p.requests.Of(c)
	want := p.specs[request.key()]
	done, err := d.turns.take(ctx, want.key())
	if err != nil {
		return server.Decision{}, err
	}
	defer done()
	s := p.Servers[want.Server]
	b, err := d.open(ctx, s, want)
	if err != nil {
		return server.Decision{}, refusal(err)
	}
	defer b.close()
	r, err := d.settle(ctx, b, c.Now, want)
	if err != nil {
		return server.Decision{}, refusal(err)
	}
	current := &r.Logins[0]
	decision := server.Decision{If: []store.Cond{{Key: databases + want.key(), Modified: r.modified}}}
	if current.Since == 0 {
		current.Since = c.Now.Unix()
		decision.Then = []store.Op{r.put(want)}
	}
	user, password := b.user(want.Name, current.Slot), r.passwords[current.Slot]
	decision.Answer.Values = s.values(want.Name, user, password)
	decision.Answer.Values["generation"] = strconv.Itoa(c.Request.Generation)
	decision.Repeated = r.until(c.Now, want)
	decision.Detail = map[string]string{
		"database": want.Name, "server": want.Server, "user": user, "generation": strconv.Itoa(current.Generation), "made": florete.UnixTime(current.Made).Format(time.RFC3339),
	}
	return decision, nil
}

// settle has the server accept the logins of a database that are due, and no others. What is
// due is kept before. Where another process changed that meanwhile, it begins again.
func (d *Databases) settle(ctx context.Context, b backend, now time.Time, want spec) (r record, err error) {
	for range 4 {
		r, err = d.due(ctx, b, now, want)
		if err != nil {
			return r, err
		}
		if err = b.set(ctx, want.Name, r.credentials()); err != nil {
			return r, err
		}
		again, err := d.read(ctx, want.key())
		if err != nil {
			return r, err
		}
		// What ends a login may be followed by what begins the next.
		if again.modified == r.modified {
			if _, due, _ := again.next(now, want, nil); !due {
				return r, nil
			}
		}
	}
	return r, fmt.Errorf("database %s: other processes change it all the time", want.key())
}

// Reseal seals the passwords anew.
func (d *Databases) Reseal(ctx context.Context) error {
	return seal.Walk(ctx, d.db, passwords, d.key.Reseal)
}
