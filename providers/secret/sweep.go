package secret

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/providers/store"
)

const (
	sweepEvery = time.Hour

	// kept is the time for which a secret is kept after no policy names it any more.
	kept = 30 * 24 * time.Hour
)

// unnamed is the beginning of the keys that record since when no policy names a secret. Times are
// in Unix seconds.
const unnamed = "secret/unnamed/"

// retain calls sweep at regular intervals until ctx ends.
func (s *Secrets) retain(ctx context.Context) {
	journal.Every(ctx, sweepEvery, s.relay.Logger, func(ctx context.Context) error {
		if p := s.policy(); p != nil {
			return s.sweep(ctx, time.Now(), p)
		}
		return nil
	}, "secrets that no policy names stay until the next try")
}

// sweep records which secrets a policy does not name, and removes secrets that no policy has named
// for long enough. Secrets that change meanwhile are left to the next sweep.
func (s *Secrets) sweep(ctx context.Context, now time.Time, p *Policy) error {
	for e, err := range store.All(ctx, s.db, prefix, "", store.MaxOps) {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(e.Key, prefix)
		_, named := p.specs[name]
		txn, err := s.over(ctx, now, e, unnamed+name, named)
		if err != nil {
			return err
		}
		if len(txn.Then) == 0 {
			continue
		}
		if _, err := s.db.Commit(ctx, txn); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// over returns the transaction that is due for one secret. The argument at is the key of the note
// about the secret.
func (s *Secrets) over(ctx context.Context, now time.Time, e store.Entry, at string, named bool) (txn store.Txn, err error) {
	note, err := store.Find(ctx, s.db, at)
	if err != nil {
		return txn, err
	}
	noted := note.Modified != 0
	txn.If = []store.Cond{{Key: e.Key, Modified: e.Modified}, {Key: at, Modified: note.Modified}}
	switch {
	case named && noted:
		txn.Then = []store.Op{store.Delete(at)}
	case named:
	case !noted:
		txn.Then = []store.Op{store.Put(at, []byte(strconv.FormatInt(now.Unix(), 10)))}
	default:
		since, err := strconv.ParseInt(string(note.Value), 10, 64)
		if err != nil {
			return txn, fmt.Errorf("%s: %w", at, err)
		}
		if now.Sub(time.Unix(since, 0)) > kept {
			txn.Then = []store.Op{store.Delete(e.Key), store.Delete(at)}
			s.relay.Logger.Info("no policy has named a secret for 30 days: it is gone", "secret", strings.TrimPrefix(e.Key, prefix))
		}
	}
	return txn, nil
}
