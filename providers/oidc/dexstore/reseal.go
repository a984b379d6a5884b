package dexstore

import (
	"context"

	"github.com/florete/florete/providers/sealedstore"
)

// Reseal seals anew the records that an older secret of the key sealed.
func (s *Store) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, s.db, "oidc/dex/", s.key.Reseal)
}
