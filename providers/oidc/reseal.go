package oidc

import (
	"context"

	"github.com/florete/florete/providers/oidc/dexstore"
	"github.com/florete/florete/providers/sealedstore"
)

// Reseal encrypts clients at external issuers and records of sign-ins with the newest secret of the
// sealing key, if an older secret sealed them. Records of exchanged codes are left unchanged,
// because they expire before the older secret is removed.
func (p *Provider) Reseal(ctx context.Context) error {
	if err := sealedstore.Walk(ctx, p.cfg.Store, externalPrefix, p.cfg.Key.Reseal); err != nil {
		return err
	}
	return dexstore.New(p.cfg.Store, p.cfg.Key).Reseal(ctx)
}
