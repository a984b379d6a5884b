package serveraccount

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

const sweepEvery = time.Minute

// Run calls Sweep at regular intervals until ctx ends.
func (a *Accounts[R, B]) Run(ctx context.Context, ready func()) error {
	ready() // hosts wait for nothing of that
	journal.Every(ctx, sweepEvery, a.Logger, func(ctx context.Context) error {
		if p := a.Policy(); p != nil {
			return a.Sweep(ctx, time.Now(), p)
		}
		return nil
	}, fmt.Sprintf("what is due at %ss waits until the next try", a.kind.Server))
	return nil
}

// Sweep does the work at servers that is due although no host requests it, such as deleting
// accounts that no policy names any more. If the work for one account fails, Sweep continues with
// the others, and returns all errors joined.
func (a *Accounts[R, B]) Sweep(ctx context.Context, now time.Time, p *Policy[R]) error {
	var failed []error
	for e, err := range store.All(ctx, a.Store, a.state(""), "", store.MaxOps) {
		if err != nil {
			return err
		}
		var of Name
		of.Server, of.Account, _ = strings.Cut(strings.TrimPrefix(e.Key, a.state("")), "/")
		if err := a.due(ctx, now, of, p); err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", a.kind.Account, of, err))
		}
	}
	return errors.Join(failed...)
}

func (a *Accounts[R, B]) due(ctx context.Context, now time.Time, of Name, p *Policy[R]) error {
	s, there := p.Servers[of.Server]
	if !there {
		return fmt.Errorf("no policy names it any more, nor its %s, where it stays as it is", a.kind.Server)
	}
	if want, named := p.wants[of]; named {
		return a.kind.Renew(ctx, now, s, want)
	}
	return a.kind.End(ctx, now, s, of)
}

// Done returns an audit row about work at a server that no host requested. Store it together with
// the changed record of the account. If the process ends before that, the next call of Sweep
// repeats the work.
func (a *Accounts[R, B]) Done(now time.Time, of Name, code, message string) server.Row {
	return server.Row{Time: now.UTC(), Kind: a.kind.Name, Outcome: server.Changed, Code: code, Message: message,
		Detail: map[string]string{a.kind.Account: of.Account, a.kind.Server: of.Server}}
}
