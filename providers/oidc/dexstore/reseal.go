package dexstore

import (
	"context"

	"github.com/florete/florete/providers/sealedstore"
)

// Reseal encrypts the records that were sealed by an older secret of the sealing key again, with
// the newest secret.
func (s *Store) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, s.db, "oidc/dex/", s.key.Reseal)
}
