package server

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
)

// Sealer is an optional interface of a Kind that stores encrypted values itself, such as signing
// keys. After a rotation of the sealing key, the server encrypts the answers that it has recorded
// with the new secret, and calls Reseal so that the kind does the same with its own values.
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

// Reseal encrypts the recorded answers in a store again, with the newest secret of the key. Answers
// that this secret has encrypted already are left unchanged.
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
