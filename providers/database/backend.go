package database

import (
	"context"
	"io"

	"github.com/florete/florete/providers/serveraccount"
)

// backend is a connection to a database server that can make databases and logins. All its methods
// may be repeated, and continue after an interruption. Errors that the server caused are made with
// serveraccount.Errorf.
type backend interface {
	// user returns the name of a login in a slot of a database.
	user(name, slot string) string

	// slots returns the slots of a database whose logins the server accepts.
	slots(ctx context.Context, name string) ([]string, error)

	// works reports whether the server has a database and these logins of it, as set makes them.
	// It changes nothing, and sees no password that somebody changed in PostgreSQL.
	works(ctx context.Context, name string, logins []credential) (bool, error)

	// set makes the missing parts of a database, and makes exactly these logins work. Without
	// logins it makes nothing, and ends open connections.
	set(ctx context.Context, name string, logins []credential) error

	// drop removes the database with all that is in it.
	drop(ctx context.Context, name string) error

	io.Closer
}

const (
	postgresKind = "postgres"
	redisKind    = "redis"
)

// backends has the functions that open a connection, by kind of server. A server may accept an
// empty password.
var backends = map[string]func(ctx context.Context, s serveraccount.Server, password string) (backend, error){
	postgresKind: openPostgres,
	redisKind:    openRedis,
}
