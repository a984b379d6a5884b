package oidc

import (
	"context"

	"github.com/florete/florete/providers/oidc/dexstore"
	"github.com/florete/florete/providers/sealedstore"
)

// Reseal seals anew clients at external issuers and records of sign-ins. Records of exchanged codes
// end sooner than the secret that sealed them.
func (p *Provider) Reseal(ctx context.Context) error {
	if err := sealedstore.Walk(ctx, p.cfg.Store, externalPrefix, p.cfg.Key.Reseal); err != nil {
		return err
	}
	return dexstore.New(p.cfg.Store, p.cfg.Key).Reseal(ctx)
}
