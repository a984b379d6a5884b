package database

import (
	"context"
	"io"

	"github.com/florete/florete/providers/serveraccount"
)

// backend is a connection to a database server. Through it the provider makes databases and logins.
// All methods may be repeated; a repeated call completes a call that was interrupted. Errors that
// the server caused are made with serveraccount.Errorf.
type backend interface {
	// user returns the user name of the login in a slot of the named database.
	user(name, slot string) string

	// slots returns the slots of a database whose logins the server accepts now.
	slots(ctx context.Context, name string) ([]string, error)

	// works reports whether the server has the database and the logins as set makes them. It
	// changes nothing. It does not notice a password that somebody changed in PostgreSQL.
	works(ctx context.Context, name string, logins []credential) (bool, error)

	// set makes the missing parts of a database, and makes the server accept exactly the given
	// logins. Without logins it makes nothing, and ends open connections.
	set(ctx context.Context, name string, logins []credential) error

	// drop removes the database with all its content.
	drop(ctx context.Context, name string) error

	io.Closer
}

const (
	postgresKind = "postgres"
	redisKind    = "redis"
)

// backends contains a function for each type of server. The function opens a connection to a server
// of this type. Some servers accept an empty password.
var backends = map[string]func(ctx context.Context, s serveraccount.Server, password string) (backend, error){
	postgresKind: openPostgres,
	redisKind:    openRedis,
}
