package oidc

import (
	"context"

	"github.com/florete/florete/providers/oidc/dexstore"
)

// Reseal seals records of sign-ins anew. A spent code ends sooner than the secret that sealed
// it.
func (p *Provider) Reseal(ctx context.Context) error {
	return dexstore.New(p.cfg.Store, p.cfg.Key).Reseal(ctx)
}
