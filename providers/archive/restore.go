package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/florete/florete/providers/store"
)

// Remembered returns the prefixes of those keys of the archive that belong in a backup. The state
// of a rollout is not included. A restored revocation list may be older than the list that some
// hosts have. These hosts keep the newer list.
func Remembered() []string { return []string{bodies, indices, versions, revoking} }

// Restored converts a value from a backup to the value that a restore stores. It marks published
// versions as restored, and leaves all other values unchanged.
func Restored(key string, value []byte) ([]byte, error) {
	if !strings.HasPrefix(key, versions) {
		return value, nil
	}
	var v Version
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	v.Restored = true
	return json.Marshal(v)
}

// Exclude calls f while no import can run, because it holds the lock that imports need. The lock
// can be lost while f runs. Each transaction that f commits must therefore contain the condition
// that f receives, which fails once the lock is lost.
func (a Archive) Exclude(ctx context.Context, f func(context.Context, store.Cond) error) (err error) {
	l, err := a.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release(context.WithoutCancel(ctx))) }()
	return f(ctx, store.Cond{Key: Held, Modified: l.at})
}
