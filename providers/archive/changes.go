package archive

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/florete/florete/providers/store"
)

// Changes yields the revision of the store at which the documents offered to hosts last changed,
// and then the revision of each later change. It ends when ctx ends, or with an error of the store.
// It skips changes that the store no longer remembers. A caller misses nothing by this, because
// each answer to a host contains all its documents.
func (a Archive) Changes(ctx context.Context) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for ctx.Err() == nil {
			newest, at, err := a.newestOffer(ctx)
			if err != nil {
				yield(0, err)
				return
			}
			if !yield(newest, nil) {
				return
			}
			for e, err := range a.Watch(ctx, everything, at) {
				if errors.Is(err, store.ErrCompacted) {
					break
				}
				if err != nil {
					yield(0, err)
					return
				}
				// A version that is removed is not in force.
				if offers := e.Key == rolling || e.Key == revoking || e.Key == accessing || strings.HasPrefix(e.Key, versions); offers && !e.Deleted && !yield(e.Modified, nil) {
					return
				}
			}
		}
	}
}

// newestOffer returns two store revisions. The first is the revision at which the offered documents
// last changed. The second is the revision up to which newestOffer has searched.
func (a Archive) newestOffer(ctx context.Context) (newest, at int64, err error) {
	all, at, err := a.List(ctx, versions)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range all {
		newest = max(newest, e.Modified)
	}
	r, err := a.Rollout(ctx)
	if err != nil {
		return 0, 0, err
	}
	list, err := a.Revocations(ctx)
	if err != nil {
		return 0, 0, err
	}
	access, err := a.Access(ctx, time.Time{})
	return max(newest, r.revision, list.revision, access.revision), at, err
}
