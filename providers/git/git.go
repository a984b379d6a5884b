// Package git implements the kind of need that gives a service a token for repositories of a Git
// forge:
//
//	POST /git/request {"forge":"forge","account":"florete-ci-token","repositories":["infra"],"access":"read","lifetime":604800}
//	→ {"url":"http://forge.demo.flor.rete:23232","user":"florete-ci-token","token":"…","credentials":"username=…","generation":"1"}
//
// Each token in the topology has its own account at the forge. The account has access to the
// token's repositories and to no others. A token is replaced before it ends, and the former token
// works until its end.
//
// A forge shows a token only once. Therefore the provider stores the token's name before it makes
// the token, and stores the token before a host receives it. A token that was made but not stored
// is ended at the forge by its name, and made again.
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/providers/store"
)

// Name is the name of the kind.
const Name = "git"

// CodeEnded is the audit code of rows about accounts whose tokens the provider ended without a
// request.
const CodeEnded = "git-ended"

// Settings is the kind's section of the settings file.
type Settings struct {
	// Credentials is the directory of the credentials with which the provider logs in at forges. It
	// contains a file for each forge, named after the forge. The default is "credentials" beside
	// the state.
	Credentials string `json:"credentials" path:""`
}

// State returns the keys in the state store that belong in a backup: the names of existing
// accounts. Access tokens are left out, because they are secrets, and are created again after a
// restore.
func (*Settings) State() server.State {
	return serveraccount.State(Name)
}

// Kind returns the kind "git" for a provider process.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	return server.Any(New(Config{
		Store: p.Store, Key: p.Key, Policy: server.Compiled[serveraccount.Policy[Request]](p.Policies), Logger: p.Logger,
		Dir: cmp.Or(s.Credentials, filepath.Join(p.Dir, "credentials")),
	}))
}

// Config configures the kind "git".
type Config = serveraccount.Config[Request]

// Tokens implements the kind "git". It creates access tokens at the cluster's Git forges, which are
// servers such as Forgejo.
type Tokens struct {
	*serveraccount.Accounts[Request, forge]
}

var (
	_ server.Kind[*serveraccount.Policy[Request]] = (*Tokens)(nil)
	_ server.Runner                               = (*Tokens)(nil)
	_ server.Sealer                               = (*Tokens)(nil)
)

// New returns the kind "git" with a configuration.
func New(c Config) *Tokens {
	t := &Tokens{}
	t.Accounts = serveraccount.New(c, serveraccount.Kind[Request, forge]{
		Name: Name, Account: "account", Server: "forge", Secrets: "tokens", AtServer: true,
		Open: map[string]func(ctx context.Context, f serveraccount.Server, secret string) (forge, error){
			softServeKind: func(ctx context.Context, f serveraccount.Server, secret string) (forge, error) {
				return openSoftServe(ctx, c.Key, f, secret)
			},
			forgejoKind: openForgejo,
		},
		Answer: t.answer, Renew: t.renew, End: t.end,
	})
	return t
}

// answer returns the token that is in use. It first ensures that the forge has the token.
func (t *Tokens) answer(ctx context.Context, b forge, now time.Time, f serveraccount.Server, want Request) (server.Decision, error) {
	r, err := t.settle(ctx, b, now, want)
	if err != nil {
		return server.Decision{}, err
	}
	current := r.Tokens[0]
	decision := server.Decision{If: []store.Cond{t.Is(want.Of(), &r)}, Repeated: r.until(now)}
	decision.Answer.Values = values(f, want.Account, r.Secrets[current.Name])
	decision.Detail = map[string]string{"token": current.Name, "access": current.Access, "until": unixtime.Unix(current.Ends).Format(time.RFC3339)}
	return decision, nil
}

// settle makes the forge have exactly the tokens of an account that are due now. The names of the
// tokens are stored before the tokens are made.
func (t *Tokens) settle(ctx context.Context, b forge, now time.Time, want Request) (r record, err error) {
	if err := t.Read(ctx, want.Of(), &r); err != nil {
		return r, err
	}
	if r.Secrets == nil {
		there, err := b.tokens(ctx, want.Account)
		if err != nil {
			return r, err
		}
		r.Tokens, r.Rights = found(there, now, want), append(r.Rights, want.others()...)
	}
	if next := r.next(now, want); r.Secrets == nil || !next.is(r) {
		if r, err = t.keep(ctx, want.Of(), next); err != nil {
			return r, err
		}
	}
	return t.apply(ctx, b, now, want, r)
}

// apply changes an account at the forge to match its record, and stores the secrets of new tokens.
func (t *Tokens) apply(ctx context.Context, b forge, now time.Time, want Request, r record) (record, error) {
	id, err := b.allow(ctx, want.Account, want.rights(), r.Rights, r.ID)
	if err != nil {
		return r, err
	}
	there, err := b.tokens(ctx, want.Account)
	if err != nil {
		return r, err
	}
	known := map[string]bool{}
	for id, name := range there {
		works := slices.ContainsFunc(r.Tokens, func(k token) bool { return k.Name == name && (k.Found || r.Secrets[name] != "") })
		if !works {
			err = errors.Join(err, b.end(ctx, want.Account, id))
		}
		known[name] = works
	}
	if err != nil {
		return r, err
	}
	has := r
	has.ID, has.Rights, has.Secrets = id, want.rights(), maps.Clone(r.Secrets)
	for _, k := range r.Tokens {
		if k.Found || known[k.Name] {
			continue
		}
		has.Secrets[k.Name], err = b.create(ctx, want.Account, k.Name, k.Access, time.Unix(k.Ends, 0).Sub(now))
		if err != nil {
			return r, err
		}
	}
	if has.is(r) && maps.Equal(has.Secrets, r.Secrets) {
		return r, nil
	}
	return t.keep(ctx, want.Of(), has)
}

// renew replaces a token when this is due. If the state was lost, renew does nothing, and the next
// request makes new tokens.
func (t *Tokens) renew(ctx context.Context, now time.Time, f serveraccount.Server, want Request) error {
	var r record
	err := t.Read(ctx, want.Of(), &r)
	if err != nil || r.Secrets == nil || r.next(now, want).is(r) && slices.Equal(r.Rights, want.rights()) {
		return err
	}
	return t.AtSame(ctx, f, want.Of(), &r, func(ctx context.Context, b forge) error {
		_, err := t.settle(ctx, b, now, want)
		return err
	})
}

// end ends the tokens of an account and revokes its rights.
func (t *Tokens) end(ctx context.Context, now time.Time, f serveraccount.Server, of serveraccount.Name) error {
	var r record
	if err := t.Read(ctx, of, &r); err != nil {
		return err
	}
	return t.AtSame(ctx, f, of, &r, func(ctx context.Context, b forge) error {
		r.Tokens = nil
		r, err := t.apply(ctx, b, now, Request{Forge: of.Server, Account: of.Account}, r)
		if err != nil {
			return err
		}
		return t.Forget(ctx, of, &r, t.Done(now, of, CodeEnded,
			fmt.Sprintf("no policy names account %s of forge %s any more: its tokens have ended, and it has access to nothing", of.Account, of.Server)))
	})
}
