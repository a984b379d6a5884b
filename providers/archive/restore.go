package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/florete/florete/providers/store"
)

// Remembered returns the key prefixes of the published data that backups contain. A rollout in
// progress is not in a backup. The restored revocation list may be older than that of some hosts;
// those hosts keep theirs.
func Remembered() []string { return []string{bodies, indices, versions, revoking} }

// Restored converts a value from a backup to the value that a restore writes.
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

// Exclude runs f while no import can run. Each transaction of f must contain the condition that f
// receives.
func (a Archive) Exclude(ctx context.Context, f func(context.Context, store.Cond) error) (err error) {
	l, err := a.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release(context.WithoutCancel(ctx))) }()
	return f(ctx, store.Cond{Key: Held, Modified: l.at})
}
