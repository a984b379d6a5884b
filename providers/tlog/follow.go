package tlog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/providers/store"
)

const (
	// pace is the pause between two reads of changes. Changes within it cost one read.
	pace = 100 * time.Millisecond

	// page is the number of rows of the store that are in memory at once.
	page = 1000

	// late bounds the time between the time in a row's key and its commit, if the store no longer
	// has the changes since. A later row is found by comparing.
	late = 10 * time.Minute
)

// position is the progress of the log. The log contains all rows of revisions below a certain one,
// and some rows of that revision.
type position struct {
	revision int64
	has      map[string]bool // keys of rows that revision made
	newest   time.Time       // time of the newest row, or later
	restored time.Time       // rows of before may be put back, and be in the log already
}

// row is a leaf that is to be appended. After it was appended, the log contains all rows up to a
// revision.
type row struct {
	Leaf
	upTo int64
}

// storeKey is the key of the value that identifies the store. Together with the revision that made
// it, the value distinguishes the store from a store that it moved to or was restored from.
const storeKey = "log/store"

// identify returns the store's identity.
func (l *Log) identify(ctx context.Context) (string, error) {
	for {
		e, err := l.Store.Get(ctx, storeKey)
		if err == nil {
			return fmt.Sprintf("%s %d\n", e.Value, e.Created), nil
		}
		if errors.Is(err, store.ErrNotFound) {
			_, err = l.Store.Commit(ctx, store.Txn{If: []store.Cond{{Key: storeKey}}, Then: []store.Op{store.Put(storeKey, []byte(rand.Text()))}})
		}
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return "", err
		}
	}
}

// restoredKey is the key under which the time of the beginning of the last restore is stored, in
// Unix nanoseconds.
const restoredKey = "log/restored"

// restoreCode is the text that marks the audit row with which a restore begins.
var restoreCode = []byte(`"code":"restore"`)

// Restoring returns the operation with which a restore announces that it writes audit rows from a
// backup. Commit it together with the first row, whose code is "restore". The log then checks
// whether it already contains rows from before the given time, and does not append those again.
func Restoring(at time.Time) store.Op {
	return store.Put(restoredKey, strconv.AppendInt(nil, at.UnixNano(), 10))
}

func (l *Log) restoredAt(ctx context.Context) (time.Time, error) {
	e, err := store.Find(ctx, l.Store, restoredKey)
	if err != nil || e.Modified == 0 {
		return time.Time{}, err
	}
	nano, err := strconv.ParseInt(string(e.Value), 10, 64)
	return time.Unix(0, nano), err
}

// errRestored is the error for rows that were restored into the store.
var errRestored = errors.New("rows were put back into the store: looking for all of them in the log")

// resume finds the position at which the log continues. If the store is not the same as before, or
// if it lacks the last row in its logged form, each row is looked up in the log.
func (a *appender) resume(ctx context.Context) (position, error) {
	is, err := a.identify(ctx)
	if err != nil {
		return position{}, err
	}
	path := filepath.Join(a.Config.Dir, storeFile)
	was, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return position{}, err
	}
	if is == string(was) && a.size > 0 && !a.incomplete.Load() {
		return a.last(ctx)
	}
	at, err := a.reconcile(ctx)
	if err != nil {
		return at, err
	}
	return at, atomicfile.File(path, []byte(is), 0o600)
}

// last returns the position after the last leaf.
func (a *appender) last(ctx context.Context) (position, error) {
	var at position
	from := a.size - min(a.size, store.MaxOps)
	var last Leaf
	for leaf, err := range a.Leaves(ctx, from, a.size) {
		if err != nil {
			return at, err
		}
		if leaf.Revision != at.revision {
			at = position{revision: leaf.Revision, has: map[string]bool{}}
		}
		at.has[leaf.Key] = true
		last = leaf
	}
	e, err := a.Store.Get(ctx, last.Key)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && e.Created != last.Revision:
		return a.reconcile(ctx)
	case err != nil:
		return at, err
	}
	at.newest = last.Time()
	a.appended.Store(at.revision - 1)
	return at, nil
}

// reconcile appends the rows of the store that are not in the log, whatever their revision. The
// leaves of these rows contain the store's current revision. The log then contains all rows up to
// that revision. Rows older than their retention are archived nevertheless.
func (a *appender) reconcile(ctx context.Context) (at position, err error) {
	_, revision, err := a.Store.List(ctx, a.Prefix+"~") // of which there are none
	if err != nil {
		return at, err
	}
	var missing []Leaf
	flush := func() error {
		inOrder(missing)
		for i := range missing {
			missing[i].Revision = revision
		}
		err := a.append(ctx, missing)
		missing = nil
		return err
	}
	kept := a.Kept(time.Now())
	m := match{kept: kept, rowAlone: func(row store.Entry) error {
		if row.Created > revision {
			return nil // it is watched
		}
		if missing = append(missing, NewLeaf(row.Key, row.Created, row.Value)); len(missing) < most {
			return nil
		}
		return flush()
	}}
	if _, err = m.run(a.Leaves(ctx, 0, a.size), a.rows(ctx, keyAt(a.Prefix, kept))); err == nil {
		err = flush()
	}
	if err != nil {
		return at, err
	}
	a.incomplete.Store(false)
	a.appended.Store(revision)
	return position{revision: revision + 1, newest: time.Now()}, nil
}

func inOrder(leaves []Leaf) {
	slices.SortFunc(leaves, func(x, y Leaf) int {
		return cmp.Or(cmp.Compare(x.Revision, y.Revision), cmp.Compare(x.Key, y.Key))
	})
}

// follow sends the rows after a position to the channel, in the order of their revisions, until ctx
// ends.
func (l *Log) follow(ctx context.Context, at position, rows chan<- row) error {
	for ctx.Err() == nil {
		err := l.watch(ctx, &at, rows)
		if errors.Is(err, store.ErrCompacted) {
			err = l.catchUp(ctx, &at, rows)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (l *Log) watch(ctx context.Context, at *position, rows chan<- row) error {
	var paced time.Time
	for e, err := range l.Store.Watch(ctx, l.Prefix, at.revision-1) {
		if err != nil {
			return err
		}
		if bytes.Contains(e.Value, restoreCode) {
			if at.restored, err = l.restoredAt(ctx); err != nil {
				return err
			}
		}
		if !e.Deleted && e.Created == e.Modified { // else archived, or edited
			if err := l.send(ctx, at, NewLeaf(e.Key, e.Created, e.Value), rows); err != nil {
				return err
			}
		}
		if time.Since(paced) > pace {
			select {
			case <-time.After(pace):
			case <-ctx.Done():
			}
			paced = time.Now()
		}
	}
	return ctx.Err()
}

// send sends a row to the channel, unless the log already contains it, and advances the position.
func (l *Log) send(ctx context.Context, at *position, leaf Leaf, rows chan<- row) error {
	switch {
	case leaf.Revision < at.revision || leaf.Revision == at.revision && at.has[leaf.Key]:
		return nil
	case leaf.Time().Before(at.restored):
		l.incomplete.Store(true)
		return errRestored
	case leaf.Revision > at.revision || at.has == nil:
		*at = position{revision: leaf.Revision, has: map[string]bool{}, newest: at.newest, restored: at.restored}
	}
	at.has[leaf.Key] = true
	if t := leaf.Time(); t.After(at.newest) {
		at.newest = t
	}
	return send(ctx, rows, row{leaf, leaf.Revision - 1})
}

func send(ctx context.Context, rows chan<- row, r row) error {
	select {
	case rows <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// catchUp sends the rows up to the current revision. It is for a store that no longer has the
// changes since the position.
func (l *Log) catchUp(ctx context.Context, at *position, rows chan<- row) error {
	_, revision, err := l.Store.List(ctx, l.Prefix+"~") // of which there are none
	if err != nil {
		return err
	}
	if at.restored, err = l.restoredAt(ctx); err != nil {
		return err
	}
	from := at.newest
	if now := time.Now(); now.Before(from) { // the clock was set back
		from = now
	}
	var leaves []Leaf
	for e, err := range l.rows(ctx, keyAt(l.Prefix, from.Add(-late))) {
		if err != nil {
			return err
		}
		if e.Created >= at.revision && e.Created <= revision {
			leaves = append(leaves, NewLeaf(e.Key, e.Created, e.Value))
		}
	}
	inOrder(leaves)
	for _, leaf := range leaves {
		if err := l.send(ctx, at, leaf, rows); err != nil {
			return err
		}
	}
	*at = position{revision: revision + 1, newest: at.newest, restored: at.restored}
	return send(ctx, rows, row{upTo: revision})
}
