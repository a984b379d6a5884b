package server

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
)

// Sealer is implemented by a Kind that stores sealed values other than recorded answers.
type Sealer interface {
	// Reseal encrypts the stored values again that were sealed by an older secret of the process's
	// key.
	Reseal(ctx context.Context) error
}

// Reseal calls the kind's method Reseal if the kind is a Sealer.
func (k AnyKind) Reseal(ctx context.Context) error {
	if k.reseal == nil {
		return nil
	}
	return k.reseal(ctx)
}

// Reseal encrypts the recorded answers again that were sealed by an older secret of key.
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
