package tlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/store"
)

const (
	// compareEvery is the interval at which a process compares all rows with the log, in addition
	// to the comparison at its start.
	compareEvery = time.Hour

	// settle is the time for which it waits at the start for recent rows.
	settle = 2 * gather

	// rest is the ratio of pauses to work while comparing, so that requests come first.
	rest = 4
)

// errIncomplete is the error for rows that the log lacks although they are older than the duration
// late.
var errIncomplete = errors.New("rows of the store are not in the log: looking for all of them")

// compareEach calls Compare regularly until ctx ends or an error occurs.
func (l *Log) compareEach(ctx context.Context) error {
	known := ""
	for wait := settle; ; wait = compareEvery {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		fault, err := l.Compare(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errIncomplete):
			l.incomplete.Store(true)
			return err
		case err != nil:
			l.Logger.Error("cannot compare the audit log with the store", "error", err)
		default:
			l.fault.Store(&fault)
			if fault != known && fault != "" {
				l.Logger.Error(fault)
			}
			known = fault
		}
	}
}

// Compare checks that the audit rows in the state store are those that were appended to the log. It
// returns a description of the first difference, or "" if there is none. It leaves out rows that
// are old enough to be in the archive.
func (l *Log) Compare(ctx context.Context) (fault string, err error) {
	appended, size := l.Appended(), l.integrated.Load()
	_, c, err := l.Checkpoint(ctx)
	if err != nil {
		return "", err
	}
	kept, tree, work := l.Kept(time.Now()), newRoot(), time.Now()
	edited, late, first := 0, 0, ""
	m := &match{
		kept: kept,
		leaf: func(leaf Leaf) error {
			if tree.add(leaf.String()); tree.End() == c.Size {
				if err := tree.is(c); err != nil {
					fault = err.Error()
				}
			}
			if tree.End()%page == 0 {
				work = pause(ctx, work)
			}
			return ctx.Err()
		},
		both: func(leaf Leaf, row store.Entry) {
			if !leaf.Of(row.Value) {
				if edited++; edited == 1 {
					first = leaf.Key
				}
			}
		},
		rowAlone: func(row store.Entry) error {
			if row.Created <= appended {
				late++
			}
			return nil
		},
	}
	rows := func(yield func(store.Entry, error) bool) {
		for e, err := range l.rows(ctx, keyAt(l.Prefix, kept)) {
			if !yield(e, err) {
				return
			}
			if work = rested(ctx, work); ctx.Err() != nil {
				return
			}
		}
	}
	alone, err := m.run(l.Leaves(ctx, 0, max(size, c.Size)), rows)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || fault != "" {
		return fault, err
	}
	missing := 0
	kept = l.Kept(time.Now())
	for _, a := range alone {
		if a.index < size && !a.Time().Before(kept) { // else not yet in the store's, or archived
			if missing++; first == "" || edited == 0 && a.Key < first {
				first = a.Key
			}
		}
	}
	switch {
	case late > 0:
		return "", errIncomplete
	case edited+missing == 0:
		return "", nil
	}
	return fmt.Sprintf("the audit log %s: %d rows of the store were edited, and %d are gone, the first of %s: florctl audit --verify",
		l.Name, edited, missing, timeOf(first).Format(time.RFC3339Nano)), nil
}

// rested calls pause if work has taken a while. The argument since is the time at which the work
// began.
func rested(ctx context.Context, since time.Time) time.Time {
	if time.Since(since) < 20*time.Millisecond {
		return since
	}
	return pause(ctx, since)
}

// pause waits in proportion to the duration of the work since a time. It returns the time at which
// the next work begins.
func pause(ctx context.Context, since time.Time) time.Time {
	select {
	case <-ctx.Done():
	case <-time.After(rest * time.Since(since)):
	}
	return time.Now()
}

// root computes the root hash of a tree, leaf by leaf.
type root struct{ *compact.Range }

func newRoot() root {
	return root{(&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)}
}

func (r root) add(leaf string) {
	if err := r.Append(rfc6962.DefaultHasher.HashLeaf([]byte(leaf)), nil); err != nil {
		panic(err) // only of ranges that do not begin at 0
	}
}

// is returns an error unless the root hash equals that of a checkpoint with the same number of
// leaves.
func (r root) is(c hostapi.VerifiedCheckpoint) error {
	hash, err := r.GetRootHash(nil)
	if err == nil && r.End() == 0 {
		hash = rfc6962.DefaultHasher.EmptyRoot()
	}
	if err != nil || r.End() != c.Size || !bytes.Equal(hash, c.Root) {
		return fmt.Errorf("the audit log %s: its first %d rows are not those that its checkpoint has: florctl audit --verify", c.Log, c.Size)
	}
	return nil
}
