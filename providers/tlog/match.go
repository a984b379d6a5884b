package tlog

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/providers/store"
)

// match finds the leaves of a log whose rows are missing in a store. Leaves and rows are both
// roughly in the order of time, so that only few wait in memory for their counterpart.
type match struct {
	kept     time.Time                   // leaves of before are left out, as are rows
	leaf     func(Leaf) error            // each, in order; nil for nothing
	both     func(Leaf, store.Entry)     // nil for nothing
	rowAlone func(row store.Entry) error // that no leaf is of, in order
}

// leafAlone is a leaf whose row is not in the store.
type leafAlone struct {
	Leaf
	index uint64
}

// run returns the leaves whose rows are missing.
func (m *match) run(leaves iter.Seq2[Leaf, error], rows iter.Seq2[store.Entry, error]) (alone []leafAlone, err error) {
	next, stop := iter.Pull2(leaves)
	defer stop()
	waiting := map[string]leafAlone{} // leaves
	early := map[string]store.Entry{} // rows
	index, over := uint64(0), false
	seen, n := 0, 0  // leaves and rows so far
	var at time.Time // of the newest leaf so far
	pull := func() error {
		l, err, ok := next()
		if !ok || err != nil {
			over = true
			return err
		}
		if m.leaf != nil {
			if err := m.leaf(l); err != nil {
				return err
			}
		}
		t := l.Time()
		if t.Before(m.kept) {
			index++
			return nil
		}
		if seen++; t.After(at) {
			at = t
		}
		if row, ok := early[l.Key]; ok {
			delete(early, l.Key)
			if m.both != nil {
				m.both(l, row)
			}
		} else {
			waiting[l.Key] = leafAlone{l, index}
		}
		index++
		return nil
	}
	flush := func() error { // of no leaf, now that there are no more
		for _, row := range slices.SortedFunc(maps.Values(early), func(x, y store.Entry) int { return strings.Compare(x.Key, y.Key) }) {
			if err := m.rowAlone(row); err != nil {
				return err
			}
		}
		clear(early)
		return nil
	}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		n++
		for t := timeOf(row.Key); !over && (seen < n || !at.After(t)); {
			if err := pull(); err != nil {
				return nil, err
			}
		}
		if l, ok := waiting[row.Key]; ok {
			delete(waiting, row.Key)
			if m.both != nil {
				m.both(l.Leaf, row)
			}
			continue
		}
		early[row.Key] = row
		if over {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	for !over {
		if err := pull(); err != nil {
			return nil, err
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return slices.Collect(maps.Values(waiting)), nil
}

// rows yields the rows of the store after a key.
func (l *Log) rows(ctx context.Context, after string) iter.Seq2[store.Entry, error] {
	return store.All(ctx, l.Store, l.Prefix, after, page)
}
