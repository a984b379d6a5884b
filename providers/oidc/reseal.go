package oidc

import (
	"context"

	"github.com/florete/florete/providers/oidc/dexstore"
	"github.com/florete/florete/providers/sealedstore"
)

// Reseal encrypts two types of records again if an older secret sealed them: clients at external
// issuers, and records of sign-ins. It leaves the records of exchanged codes unchanged, because
// they expire sooner than that secret.
func (p *Provider) Reseal(ctx context.Context) error {
	if err := sealedstore.Walk(ctx, p.cfg.Store, externalPrefix, p.cfg.Key.Reseal); err != nil {
		return err
	}
	return dexstore.New(p.cfg.Store, p.cfg.Key).Reseal(ctx)
}
