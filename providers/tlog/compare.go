package tlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/florete/florete/providers/checkpoint"
)

const (
	// compareEvery is how often a process compares all rows with the log, beside what it does at
	// its start.
	compareEvery = time.Hour

	// settle is how long it waits at the start for what came meanwhile.
	settle = 2 * gather

	// rest is how long comparing rests for the time that it works, so that requests come first.
	rest = 4
)

// errIncomplete is of rows that the log lacks, and that it should have: they came later than
// late.
var errIncomplete = errors.New("rows of the store are not in the log: looking for all of them")

// compareEach compares again and again.
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
			l.incomplete = true
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

// logged is what comparing has of a leaf.
type logged struct {
	hash  [16]byte
	index uint64
}

// Compare compares the rows of the store with the log, and returns how they differ, empty where
// they do not. Rows that may have been archived are left out.
func (l *Log) Compare(ctx context.Context) (fault string, err error) {
	appended, size := l.Appended(), l.integrated.Load()
	kept := l.Kept(time.Now())
	_, c, err := l.Checkpoint(ctx)
	if err != nil {
		return "", err
	}
	leaves := map[[16]byte]logged{}
	root := newRoot()
	index := uint64(0)
	work := time.Now()
	for leaf, err := range l.Leaves(ctx, 0, max(size, c.Size)) {
		if err != nil {
			return "", err
		}
		if !leaf.Time().Before(kept) {
			leaves[short(leaf.Key)] = logged{[16]byte(leaf.Hash[:16]), index}
		}
		root.add(leaf.String())
		if index++; index == c.Size {
			if err := root.is(c); err != nil {
				return err.Error(), nil
			}
		}
		if index%page == 0 {
			work = pause(ctx, work)
		}
	}
	edited, first := 0, ""
	for after := keyAt(l.Prefix, kept); ; work = pause(ctx, work) {
		entries, err := l.Store.Page(ctx, l.Prefix, after, page)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			after = e.Key
			is, ok := leaves[short(e.Key)]
			switch row := NewLeaf(e.Key, 0, e.Value); {
			case !ok && e.Created <= appended:
				return "", errIncomplete
			case ok && is.hash != [16]byte(row.Hash[:16]):
				if edited++; edited == 1 {
					first = e.Key
				}
			}
			delete(leaves, short(e.Key))
		}
		if len(entries) < page {
			break
		}
	}
	missing, kept := 0, l.Kept(time.Now())
	oldest := size
	for _, is := range leaves {
		if is.index < size { // else not yet
			oldest = min(oldest, is.index)
		}
	}
	for leaf, err := range l.Leaves(ctx, oldest, size) {
		if err != nil {
			return "", err
		}
		if _, gone := leaves[short(leaf.Key)]; gone && !leaf.Time().Before(kept) {
			if missing++; missing == 1 && edited == 0 {
				first = leaf.Key
			}
		}
	}
	if edited+missing == 0 {
		return "", nil
	}
	return fmt.Sprintf("the audit log %s: %d rows of the store were edited, and %d are gone, the first of %s: florctl audit --verify",
		l.Name, edited, missing, timeOf(first).Format(time.RFC3339Nano)), nil
}

// pause rests after work, and returns when the next begins.
func pause(ctx context.Context, since time.Time) time.Time {
	select {
	case <-ctx.Done():
	case <-time.After(rest * time.Since(since)):
	}
	return time.Now()
}

// root is the root of a tree that is built leaf by leaf.
type root struct{ *compact.Range }

func newRoot() root {
	return root{(&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)}
}

func (r root) add(leaf string) {
	if err := r.Append(rfc6962.DefaultHasher.HashLeaf([]byte(leaf)), nil); err != nil {
		panic(err) // only of ranges that do not begin at 0
	}
}

// is compares with a checkpoint of the same size.
func (r root) is(c checkpoint.Checkpoint) error {
	hash, err := r.GetRootHash(nil)
	if err == nil && r.End() == 0 {
		hash = rfc6962.DefaultHasher.EmptyRoot()
	}
	if err != nil || r.End() != c.Size || !bytes.Equal(hash, c.Root) {
		return fmt.Errorf("the audit log %s: its first %d rows are not those that its checkpoint has: florctl audit --verify", c.Log, c.Size)
	}
	return nil
}
