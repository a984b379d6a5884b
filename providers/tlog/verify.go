package tlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete/internal/hostapi"
)

// Verdict is the result of verifying an audit log.
type Verdict struct {
	Log       string    `json:"log"`
	Rows      uint64    `json:"rows"`
	Archived  uint64    `json:"archived"`  // rows that are no longer in the store
	Elsewhere uint64    `json:"elsewhere"` // archived rows that are not in this host's archive
	Kept      time.Time `json:"kept"`      // rows from before this time may be archived
	Edited    uint64    `json:"edited"`
	Missing   uint64    `json:"missing"`
	Doubled   uint64    `json:"doubled"` // rows that the log contains more than once
	Faults    []string  `json:"faults"`  // the first differences
}

// maxFaults is the largest number of faults in a Verdict.
const maxFaults = 10

// Verify computes the hash of a log again from all its rows, and compares it with the signed
// checkpoint. Missing and changed rows become faults in the Verdict. An error means that the log
// could not be read.
//
// Rows since the time kept must exist, even if the source says that they have expired, because an
// attacker who deleted them would say so too. If kept is zero, the source decides which rows must
// exist.
func Verify(ctx context.Context, s Source, kept time.Time) (v Verdict, err error) {
	head, err := s.Head(ctx)
	if err != nil {
		return v, err
	}
	v.Kept, v.Faults = head.Kept, []string{}
	if !kept.IsZero() && kept.Before(head.Kept) {
		v.Kept = kept
	}
	fault := func(format string, args ...any) {
		if len(v.Faults) < maxFaults {
			v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
		}
	}
	c, err := hostapi.OpenCheckpoint(head.Key, head.Checkpoint)
	if err != nil {
		fault("%v", err)
		return v, nil
	}
	v.Log = c.Log
	tree, seen := newRoot(), map[string]bool{}
	for v.Rows < c.Size {
		rows, err := s.Rows(ctx, v.Rows, c.Size)
		if err != nil {
			return v, err
		}
		for _, r := range rows {
			leaf, err := ParseLeaf(r.Leaf)
			if r.Archived {
				v.Archived++
			}
			if err == nil && seen[leaf.Key] {
				v.Doubled++
				fault("row %d, %s, of %s: is in the log twice", v.Rows, leaf.Key, leaf.Time().Format(time.RFC3339Nano))
			}
			seen[leaf.Key] = true
			switch {
			case err != nil:
				fault("row %d: %v", v.Rows, err)
			case r.Row == nil && leaf.Time().Before(v.Kept):
				v.Archived++
				v.Elsewhere++
			case r.Row == nil:
				v.Missing++
				fault("row %d, %s, of %s: is gone from the store%s", v.Rows, leaf.Key, leaf.Time().Format(time.RFC3339Nano), claimed(leaf.Time(), head.Kept))
			case !leaf.Of([]byte(*r.Row)):
				v.Edited++
				fault("row %d, %s, of %s: was edited in the %s", v.Rows, leaf.Key, leaf.Time().Format(time.RFC3339Nano), r.place())
			}
			tree.add(r.Leaf)
			v.Rows++
		}
		if len(rows) == 0 {
			break
		}
	}
	if err := tree.is(c); err != nil {
		fault("%v", err)
	}
	return v, nil
}

// claimed returns the text for a missing row that the source says it no longer keeps.
func claimed(row, kept time.Time) string {
	if !row.Before(kept) {
		return ""
	}
	return ", which says that it keeps rows since " + kept.Format(time.DateOnly) + ": where that is right, verify with the --keep of its provider.hujson"
}

// place describes where the row is stored.
func (l Logged) place() string {
	if l.Archived {
		return "archive"
	}
	return "store"
}

// Verify returns an error unless the proof shows that the log contains the row, exactly as the
// state store or the archive now contains it.
func (p Proof) Verify() error {
	c, err := hostapi.OpenCheckpoint(p.Key, p.Checkpoint)
	if err != nil {
		return err
	}
	leaf, err := ParseLeaf(p.Leaf)
	if err != nil {
		return err
	}
	if p.Row != nil && !leaf.Of([]byte(*p.Row)) {
		return fmt.Errorf("row %d of the audit log %s: was edited in the %s", p.Index, c.Log, p.place())
	}
	return c.Includes(p.Leaf, p.Index, p.Hashes)
}

// Follow waits for audit rows that are appended to the log from now on, and calls yield with each,
// in order. It returns nil when ctx ends. If yield returns an error, Follow returns it.
func Follow(ctx context.Context, s Source, yield func(Logged) error) error {
	size, begun := uint64(0), false
	for {
		head, err := s.Head(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		c, err := hostapi.OpenCheckpoint(head.Key, head.Checkpoint)
		if err != nil {
			return err
		}
		if !begun {
			size, begun = c.Size, true
		}
		for size < c.Size {
			rows, err := s.Rows(ctx, size, c.Size)
			if err == nil && len(rows) == 0 {
				err = errors.New("the audit log returned no rows, where it has some")
			}
			if err != nil {
				return err
			}
			for _, r := range rows {
				if err := yield(r); err != nil {
					return err
				}
			}
			size += uint64(len(rows))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(gather):
		}
	}
}
