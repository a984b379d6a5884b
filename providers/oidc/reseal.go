package oidc

import (
	"context"

	"github.com/florete/florete/providers/oidc/dexstore"
	"github.com/florete/florete/providers/sealedstore"
)

// Reseal encrypts the stored clients at external issuers and the records of sign-ins again, with
// the newest secret of the sealing key. Values that this secret has encrypted already are left
// unchanged, and so are records of exchanged codes, which expire before an older secret is removed.
func (p *Provider) Reseal(ctx context.Context) error {
	if err := sealedstore.Walk(ctx, p.cfg.Store, externalPrefix, p.cfg.Key.Reseal); err != nil {
		return err
	}
	return dexstore.New(p.cfg.Store, p.cfg.Key).Reseal(ctx)
}
