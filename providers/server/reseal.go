package server

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
)

// Sealer is implemented by a Kind that stores sealed values itself, such as signing keys. After a
// rotation of the sealing key, the server reseals the answers that it has recorded, and calls
// Reseal for all other values.
type Sealer interface {
	// Reseal encrypts the values that an older secret of the process's key sealed again, with the
	// newest secret.
	Reseal(ctx context.Context) error
}

// Reseal calls the kind's method Reseal if the kind is a Sealer.
func (k AnyKind) Reseal(ctx context.Context) error {
	if k.reseal == nil {
		return nil
	}
	return k.reseal(ctx)
}

// Reseal encrypts the recorded answers in the store with the newest secret of the key, if an older
// secret sealed them.
func Reseal(ctx context.Context, s store.Store, key *sealedstore.Key) error {
	return sealedstore.Walk(ctx, s, answersPrefix, func(at string, value []byte) ([]byte, bool, error) {
		var r record
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, false, fmt.Errorf("%s: %w", at, err)
		}
		answer, changed, err := key.Reseal(at, r.Answer)
		if err != nil || !changed {
			return value, false, err
		}
		r.Answer = answer
		value, err = json.Marshal(r)
		return value, true, err
	})
}
