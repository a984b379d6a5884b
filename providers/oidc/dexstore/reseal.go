package dexstore

import (
	"context"

	"github.com/florete/florete/providers/sealedstore"
)

// Reseal encrypts all records of the Store again, with the newest secret of the sealing key.
// Records that this secret has encrypted already are left unchanged.
func (s *Store) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, s.db, "oidc/dex/", s.key.Reseal)
}
