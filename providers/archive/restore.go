package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/florete/florete/providers/store"
)

// Remembered returns the key prefixes of the published data that backups contain. A backup contains
// no rollout in progress. The revocation list in a backup may be older than the list that some
// hosts have; those hosts keep theirs.
func Remembered() []string { return []string{bodies, indices, versions, revoking} }

// Restored returns the value that a restore writes for a key. The argument value is the value in
// the backup.
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

// Exclude runs a function while no import can run. Each transaction of the function must contain
// the condition that it receives.
func (a Archive) Exclude(ctx context.Context, f func(context.Context, store.Cond) error) (err error) {
	l, err := a.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release(context.WithoutCancel(ctx))) }()
	return f(ctx, store.Cond{Key: Held, Modified: l.at})
}
