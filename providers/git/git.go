// Package git is the kind of need whose answer is a token for repositories of a forge, a
// server that has git repositories:
//
//	POST /git/request {"forge":"forge","account":"florete-ci-token","repositories":["infra"],"access":"read","lifetime":604800}
//	→ {"url":"http://forge.demo.flor.rete:23232","user":"florete-ci-token","token":"…","credentials":"username=…","generation":"1"}
//
// Each token that the topology names has an account of its own at the forge, which has access
// to the token's repositories and to no others. A token is replaced before it ends; the former
// one works on until then.
//
// What a forge shows of a token it shows once. So its name is kept before it is made, and it
// before a host has it: what was cut off between the two is ended at the forge, and made anew.
package git

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/seal"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name of the kind.
const Name = "git"

const (
	// repeated is how long the same request has the recorded answer.
	repeated = 30 * time.Second

	// deadline is of all that one request does at a forge: less than a host waits.
	deadline = 15 * time.Second
)

// Settings are the kind's section of the settings file.
type Settings struct {
	// Credentials is the directory of those that the provider acts by, a file for each forge,
	// named as it is: "credentials" beside the state, unless written.
	Credentials string `json:"credentials" path:""`
}

// State is which accounts there are. Their tokens are sealed, and made anew.
func (*Settings) State() server.State { return server.State{Remembered: []string{accounts}} }

// Kind makes the kind.
func (s *Settings) Kind(p server.Process) server.Kind {
	return New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[Policy](p.Policies), Logger: p.Logger,
		Credentials: cmp.Or(s.Credentials, filepath.Join(p.Dir, "credentials")),
	})
}

// Config of the kind. All fields are needed, the last two for Run alone.
type Config struct {
	Store       store.Store
	Key         *seal.Key
	Credentials string

	// Policy is the one in force, nil while that does not run this kind.
	Policy func() *Policy
	Logger *slog.Logger
}

// Tokens is the kind "git".
type Tokens struct {
	records
	Config
	turns sync.Map // of those who work at a forge, by its name
}

var (
	_ server.Answerer = (*Tokens)(nil)
	_ server.Runner   = (*Tokens)(nil)
	_ server.Sealer   = (*Tokens)(nil)
)

// New makes the kind.
func New(c Config) *Tokens {
	return &Tokens{records: records{c.Store, c.Key}, Config: c}
}

// Name of the kind.
func (t *Tokens) Name() string { return Name }

// Answer answers with the token in use, once the forge has it.
func (t *Tokens) Answer(ctx context.Context, c server.Call) (server.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	p := c.Compiled.(*Policy)
	request := p.requests.Of(c)
	want := p.specs[request.key()]
	f := p.Forges[want.Forge]
	var r record
	err := t.at(ctx, f, want, func(b forge) (err error) {
		r, err = t.settle(ctx, b, c.Now, want)
		return err
	})
	if err != nil {
		return server.Decision{}, refusal(err)
	}
	current := r.Tokens[0]
	decision := server.Decision{If: []store.Cond{{Key: accounts + want.key(), Modified: r.modified}}, Repeated: r.until(c.Now)}
	decision.Answer.Values = f.values(want.Account, r.secrets[current.Name])
	decision.Answer.Values["generation"] = strconv.Itoa(c.Request.Generation)
	decision.Detail = map[string]string{
		"forge": want.Forge, "account": want.Account, "token": current.Name, "access": current.Access, "until": florete.UnixTime(current.Ends).Format(time.RFC3339),
	}
	return decision, nil
}

// settle has the forge know the tokens of an account that are due, and no others. What is due
// is kept before.
func (t *Tokens) settle(ctx context.Context, b forge, now time.Time, want spec) (record, error) {
	r, err := t.read(ctx, want.key())
	if err != nil {
		return r, err
	}
	if r.secrets == nil {
		there, err := b.tokens(ctx, want.Account)
		if err != nil {
			return r, err
		}
		r.Tokens, r.Rights = found(there), append(r.Rights, want.others()...)
	}
	if next := r.next(now, want); r.secrets == nil || !next.is(r) {
		if r, err = t.write(ctx, want.key(), next); err != nil {
			return r, err
		}
	}
	return t.apply(ctx, b, now, want, r)
}

// apply makes an account at the forge what its record is, and keeps what that brought.
func (t *Tokens) apply(ctx context.Context, b forge, now time.Time, want spec, r record) (record, error) {
	if err := b.allow(ctx, want.Account, want.rights(), r.Rights); err != nil {
		return r, err
	}
	there, err := b.tokens(ctx, want.Account)
	if err != nil {
		return r, err
	}
	known := map[string]bool{}
	for id, name := range there {
		works := slices.ContainsFunc(r.Tokens, func(k token) bool { return k.Name == name && (k.Found || r.secrets[name] != "") })
		if !works {
			err = errors.Join(err, b.end(ctx, want.Account, id))
		}
		known[name] = works
	}
	if err != nil {
		return r, err
	}
	has := r
	has.Rights, has.secrets = want.rights(), maps.Clone(r.secrets)
	for _, k := range r.Tokens {
		if k.Found || known[k.Name] {
			continue
		}
		has.secrets[k.Name], err = b.create(ctx, want.Account, k.Name, k.Access, time.Unix(k.Ends, 0).Sub(now))
		if err != nil {
			return r, err
		}
	}
	if has.is(r) && maps.Equal(has.secrets, r.secrets) {
		return r, nil
	}
	return t.write(ctx, want.key(), has)
}

// at works at a forge, one at a time.
func (t *Tokens) at(ctx context.Context, f Forge, of spec, work func(b forge) error) error {
	turn, _ := t.turns.LoadOrStore(of.Forge, make(chan struct{}, 1))
	mine := turn.(chan struct{})
	select {
	case mine <- struct{}{}:
		defer func() { <-mine }()
	case <-ctx.Done():
		return api.Errorf(api.Transient, api.CodeBusy, "forge %s: other requests work on it", of.Forge)
	}
	b, err := t.open(ctx, f, of)
	if err != nil {
		return err
	}
	defer b.close()
	return work(b)
}

// Reseal seals the tokens anew.
func (t *Tokens) Reseal(ctx context.Context) error {
	return seal.Walk(ctx, t.db, secrets, t.key.Reseal)
}
