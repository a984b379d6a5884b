package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/florete/florete/providers/store"
)

// Remembered returns the key prefixes of published data that backups contain. A rollout in progress
// is not part of it. A restored revocation list is the newest that is left; hosts with a newer one
// keep theirs.
func Remembered() []string { return []string{bodies, indices, versions, revoking} }

// Restored returns the value that a restore writes for a value of a backup.
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

// Exclude prevents imports while f runs. f must put the condition that it receives into each
// transaction.
func (a Archive) Exclude(ctx context.Context, f func(context.Context, store.Cond) error) (err error) {
	l, err := a.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release(context.WithoutCancel(ctx))) }()
	return f(ctx, store.Cond{Key: Held, Modified: l.at})
}
