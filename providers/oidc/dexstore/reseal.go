package dexstore

import (
	"context"

	"github.com/florete/florete/providers/sealedstore"
)

// Reseal encrypts all records of the Store with the newest secret of the sealing key, if an older
// secret sealed them.
func (s *Store) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, s.db, "oidc/dex/", s.key.Reseal)
}
