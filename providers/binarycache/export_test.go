package binarycache

import (
	"context"
	"time"
)

// Sweep removes what is older and nobody needs.
func Sweep(ctx context.Context, c Config, older time.Time) error {
	return newCache(c).sweep(ctx, older)
}
