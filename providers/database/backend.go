package database

import (
	"context"
	"io"

	"github.com/florete/florete/providers/serveraccount"
)

// backend is a connection to a database server, as somebody who makes databases and logins
// there. All its methods may be repeated, and go on from where one was cut off. Errors are
// of serveraccount.Errorf where the server is to blame.
type backend interface {
	// user is how a login in a slot of a database is called.
	user(name, slot string) string

	// slots are those of a database that can log in.
	slots(ctx context.Context, name string) ([]string, error)

	// works reports whether the server has a database and these logins of it, as set makes them.
	// It changes nothing, and sees no password that somebody changed in PostgreSQL.
	works(ctx context.Context, name string, logins []credential) (bool, error)

	// set makes what is missing of a database, and has exactly these log in. With none it
	// makes nothing, and ends what is open.
	set(ctx context.Context, name string, logins []credential) error

	// drop removes the database with all that is in it.
	drop(ctx context.Context, name string) error

	io.Closer
}

const (
	postgresKind = "postgres"
	redisKind    = "redis"
)

// backends open a connection. A server may let in without a password.
var backends = map[string]func(ctx context.Context, s serveraccount.Server, password string) (backend, error){
	postgresKind: openPostgres,
	redisKind:    openRedis,
}
