package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/florete/florete/providers/store"
)

// Remembered returns the prefixes of the archive's keys that belong in a backup. The state of a
// rollout is not among them. The restored revocation list may be older than the list of some hosts;
// these hosts keep their list.
func Remembered() []string { return []string{bodies, indices, versions, revoking} }

// Restored converts the value of a key in a backup to the value that a restore writes. It marks
// versions as restored, and leaves other values unchanged.
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

// Exclude calls f while it holds the lock that imports take. The lock can be lost while f runs.
// Every transaction of f must therefore contain the condition that f receives, which fails once the
// lock is lost.
func (a Archive) Exclude(ctx context.Context, f func(context.Context, store.Cond) error) (err error) {
	l, err := a.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release(context.WithoutCancel(ctx))) }()
	return f(ctx, store.Cond{Key: Held, Modified: l.at})
}
