package git

import (
	"context"
	"io"
	"time"
)

// forge is a connection to a Git forge under an account that can make accounts. All methods may be
// repeated; a repeated call completes a call that was interrupted. Errors that the forge caused are
// made with serveraccount.Errorf.
type forge interface {
	// allow makes an account, unless it exists. It gives the account the rights, and revokes those
	// of the former rights that are no longer included. It returns the number that the forge has
	// for the account, or zero if the forge has no numbers. The argument known is the number that
	// allow returned before. If the provider cannot have made the account, allow returns an error.
	// If the account has a number other than known, allow ends all ways in which others can sign in
	// to it.
	allow(ctx context.Context, account string, rights, former []right, known int64) (id int64, err error)

	// tokens returns the names of an account's tokens, by ID. It returns none if the account does
	// not exist.
	tokens(ctx context.Context, account string) (map[string]string, error)

	// create makes a token and returns its secret. If the forge can end tokens by itself, the token
	// ends after the time lasts.
	create(ctx context.Context, account, name, access string, lasts time.Duration) (string, error)

	// end makes a token of an account invalid.
	end(ctx context.Context, account, id string) error

	io.Closer
}

const (
	softServeKind = "soft-serve"
	forgejoKind   = "forgejo"
)
