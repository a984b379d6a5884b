package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/florete/florete/providers/rollout"
	"github.com/florete/florete/providers/store"
)

// rolling is the key of the rollout in progress, or of the last one.
const rolling = everything + "rollout"

// Rollout records how far hosts have come from one version of the documents to the next. It is the
// record of the rollout in progress or, if there is none, of the last rollout.
type Rollout struct {
	rollout.State

	// Bridge has the policies that provider hosts use during the rollout. They grant the needs of
	// both versions. Bridge is nil if both versions grant the same needs. Return has the documents
	// of the former version, in case the rollout is aborted. They are signed in advance under a
	// serial above the new version's, because no signing key is available during an abort.
	Bridge *Version `json:"bridge,omitempty"`
	Return *Version `json:"return,omitempty"`

	revision int64 // revision of the key
}

// Rollout returns the record of the rollout in progress or, if there is none, of the last rollout.
// If there never was a rollout, it returns the zero Rollout.
func (a Archive) Rollout(ctx context.Context) (r Rollout, err error) {
	r.revision, err = store.Load(ctx, a, rolling, &r)
	return r, err
}

func (r Rollout) op() (store.Op, error) {
	value, err := json.Marshal(r)
	return store.Put(rolling, value), err
}

// needs returns the versions that must be kept for a rollout in progress, besides the newest ones.
func (r Rollout) needs() (all []Version) {
	if !r.AtWork() {
		return nil
	}
	for _, v := range []*Version{r.Bridge, r.Return} {
		if v != nil {
			all = append(all, *v)
		}
	}
	return all
}

// SetRollout stores a new state for a rollout that Archive.Rollout has returned, and applies the
// further operations in the same transaction. If the new state returns hosts to the former version,
// the documents of that version become the newest version. If the stored rollout has changed since
// Archive.Rollout returned it, the error is store.ErrConflict.
func (a Archive) SetRollout(ctx context.Context, r Rollout, s rollout.State, then ...store.Op) error {
	if r.AtWork() && r.Status != rollout.Returning && slices.Contains([]rollout.Status{rollout.Returning, rollout.Stopped, rollout.Aborted}, s.Status) {
		back := *r.Return
		back.Imported = s.Ended
		value, err := json.Marshal(back)
		if err != nil {
			return err
		}
		then = append(then, store.Put(versionKey(back.Serial), value))
	}
	r.State = s
	op, err := r.op()
	if err != nil {
		return err
	}
	_, err = a.Commit(ctx, store.Txn{If: []store.Cond{{Key: rolling, Modified: r.revision}}, Then: append(then, op)})
	return err
}

// Waited returns the hosts for which a rollout waits.
func (a Archive) Waited(ctx context.Context, r Rollout) (all []rollout.Host, err error) {
	v, err := a.version(ctx, r.Serial)
	if err != nil {
		return nil, err
	}
	whole, err := a.whole(ctx, v)
	if err != nil {
		return nil, err
	}
	var former index
	if len(r.Budgets) > 0 {
		v, err := a.version(ctx, r.Former)
		if err != nil {
			return nil, err
		}
		if former, err = a.whole(ctx, v); err != nil {
			return nil, err
		}
	}
	for _, name := range sorted(whole) {
		if e := whole[name][0]; e.Wave > 0 {
			all = append(all, rollout.Host{Name: name, Wave: e.Wave, Group: e.Group, Serial: r.Serial, Before: e.Before, New: len(former[name]) == 0})
		}
	}
	if r.Bridge == nil {
		return all, nil
	}
	bridged, err := a.whole(ctx, *r.Bridge)
	if err != nil {
		return nil, err
	}
	for _, name := range sorted(bridged) {
		all = append(all, rollout.Host{Name: name, Serial: r.Bridge.Serial, Before: whole[name][0].Before, New: !slices.ContainsFunc(former[name], isPolicy)})
	}
	return all, nil
}

// version returns the version with the given serial, if the archive keeps it.
func (a Archive) version(ctx context.Context, serial int64) (v Version, err error) {
	e, err := a.Get(ctx, versionKey(serial))
	if err == nil {
		v, err = decodeVersion(e)
	}
	if err != nil {
		return v, fmt.Errorf("version %d: %w", serial, err)
	}
	return v, nil
}
