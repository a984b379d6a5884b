package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

const sweepEvery = time.Minute

// CodeEnded is, in the audit log, that an account was ended without a request.
const CodeEnded = "git-ended"

// Run ends tokens whose time is over, and those that no policy names.
func (t *Tokens) Run(ctx context.Context, ready func()) error {
	ready() // hosts wait for nothing of that
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for last := ""; ; {
		if p := t.Policy(); p != nil {
			err := t.sweep(ctx, time.Now(), p)
			if err != nil && ctx.Err() == nil && err.Error() != last {
				last = err.Error()
				t.Logger.Error("what is over at forges goes on until the next try", "error", err)
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

// sweep does at forges what is due without a request. One that fails holds up no other.
func (t *Tokens) sweep(ctx context.Context, now time.Time, p *Policy) error {
	var failed []error
	for after := ""; ; {
		entries, err := t.db.Page(ctx, accounts, after, store.MaxOps)
		if err != nil {
			return err
		}
		for _, e := range entries {
			after = e.Key
			key := strings.TrimPrefix(e.Key, accounts)
			if err := t.over(ctx, now, key, p); err != nil {
				failed = append(failed, fmt.Errorf("account %s: %w", key, err))
			}
		}
		if len(entries) < store.MaxOps {
			return errors.Join(failed...)
		}
	}
}

// over does what is due for one account.
func (t *Tokens) over(ctx context.Context, now time.Time, key string, p *Policy) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	r, err := t.read(ctx, key)
	if err != nil {
		return err
	}
	want, isNamed := p.specs[key]
	if isNamed {
		if r.secrets == nil || r.next(now, want).is(r) && slices.Equal(r.Rights, want.rights()) {
			return nil // what a state lost, the next request makes
		}
		return t.at(ctx, p.Forges[want.Forge], want, func(b forge) error {
			_, err := t.settle(ctx, b, now, want)
			return err
		})
	}
	var of spec
	of.Forge, of.Account, _ = strings.Cut(key, "/")
	f, there := p.Forges[of.Forge]
	if !there {
		return errors.New("no policy names it any more, nor its forge, where it stays as it is")
	}
	return t.at(ctx, f, of, func(b forge) error {
		r, err := t.read(ctx, key) // as it is now that nobody else works there
		if err != nil {
			return err
		}
		r.Tokens = nil
		if r, err = t.apply(ctx, b, now, of, r); err != nil {
			return err
		}
		row := server.Row{Time: now.UTC(), Kind: Name, Outcome: server.Changed, Code: CodeEnded, Detail: map[string]string{"account": of.Account, "forge": of.Forge},
			Message: fmt.Sprintf("no policy names account %s of forge %s any more: its tokens have ended, and it has access to nothing", of.Account, of.Forge)}
		if err := t.forget(ctx, key, r, row.Op()); err != nil {
			return err
		}
		row.Log(ctx, t.Logger)
		return nil
	})
}
