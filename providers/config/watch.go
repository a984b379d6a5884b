package config

import (
	"context"
	"errors"
	"iter"

	"github.com/florete/florete/providers/store"
)

// offers start the keys that decide what is in force for a node, beside its envelopes.
const offers = "config/version/"

// Changes yields the revision of the newest publication, and of each that follows. It is the
// store's, so hosts resume after a restart. What was compacted in between is left out: every
// answer is whole.
func (p Provider) Changes(ctx context.Context) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for ctx.Err() == nil {
			newest, at, err := p.newestOffer(ctx)
			if err != nil {
				yield(0, err)
				return
			}
			if !yield(newest, nil) {
				return
			}
			for e, err := range p.archive.Watch(ctx, offers, at) {
				if errors.Is(err, store.ErrCompacted) {
					break
				}
				if err != nil {
					yield(0, err)
					return
				}
				// A version that goes is none that is in force.
				if !e.Deleted && !yield(e.Modified, nil) {
					return
				}
			}
		}
	}
}

// newestOffer is the revision at which the offers last changed, of those up to another.
func (p Provider) newestOffer(ctx context.Context) (newest, at int64, err error) {
	all, at, err := p.archive.List(ctx, offers)
	for _, e := range all {
		newest = max(newest, e.Modified)
	}
	return newest, at, err
}
