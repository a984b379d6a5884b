package git

import (
	"context"
	"io"
	"time"
)

// forge is a connection to a Git forge as an account that makes accounts. All its methods may be
// repeated, and continue after an interruption. Errors that the forge caused are made with
// serveraccount.Errorf.
type forge interface {
	// allow makes an account that is not there, and gives it these rights and none of the
	// former ones besides. It returns the number that the forge has of the account, zero where
	// it has none; known is the one that it returned before. An account of another number is
	// given nothing unless the provider made it, and whoever else signs in there does no more.
	allow(ctx context.Context, account string, rights, former []right, known int64) (id int64, err error)

	// tokens are the names of those of an account, by ID; none of one that is not there.
	tokens(ctx context.Context, account string) (map[string]string, error)

	// create makes a token, which does not work longer than that where the forge can end it.
	create(ctx context.Context, account, name, access string, lasts time.Duration) (string, error)

	// end has a token work no more.
	end(ctx context.Context, account, id string) error

	io.Closer
}

const (
	softServeKind = "soft-serve"
	forgejoKind   = "forgejo"
)
