package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/florete/florete/providers/account"
)

// postgres is a PostgreSQL server, of version 13 or newer. A database and all in it belong to
// a role of its name, which cannot log in. Those that can are members of that, and are that
// from the first statement on: so what one makes the next one can alter and drop.
type postgres struct {
	*pgx.Conn
	admin string
}

var _ backend = (*postgres)(nil)

// lock is what numbers of advisory locks begin with: "flor".
const lock = 0x666c6f72

func openPostgres(ctx context.Context, s account.Server, password, name string) (backend, error) {
	// What is written here no variable of the environment replaces.
	config, err := pgx.ParseConfig("host=localhost port=5432 user=florete dbname=postgres sslmode=disable passfile=/dev/null connect_timeout=10")
	if err != nil {
		return nil, err
	}
	config.User, config.Password, config.Fallbacks = s.User, password, nil
	config.MaxProtocolMessageBodyLen = 1 << 20
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return account.Dial(ctx, s.Address) }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", cause(err))
	}
	p := &postgres{conn, s.User}
	if err := p.prepare(ctx, name); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// prepare has the connection to itself what has a name, and finds what its role may not do.
func (p *postgres) prepare(ctx context.Context, name string) error {
	var super, roles, databases bool
	err := p.QueryRow(ctx, `SELECT rolsuper, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = current_user`).Scan(&super, &roles, &databases)
	var lacks []string
	if !super && !roles {
		lacks = append(lacks, "CREATEROLE")
	}
	if !super && !databases {
		lacks = append(lacks, "CREATEDB")
	}
	if err == nil && lacks != nil {
		what := strings.Join(lacks, " ")
		return fmt.Errorf("the role lacks %s: as a superuser, ALTER ROLE %s %s;", what, quoted(p.admin), what)
	}
	if err == nil {
		_, err = p.Exec(ctx, `SELECT pg_advisory_lock($1, hashtext($2))`, lock, name)
	}
	return cause(err)
}

// cause is what is wrong, without how pgx came upon it.
func cause(err error) error {
	var of *pgconn.PgError
	var network *net.OpError
	switch {
	case errors.As(err, &of):
		return of
	case errors.As(err, &network):
		return network
	}
	return err
}

// failed is an error of one statement, or of what it found.
func (p *postgres) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return account.Errorf("PostgreSQL: %s: %w", doing, cause(err))
}

func (p *postgres) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), account.Deadline/5)
	defer cancel()
	return p.Conn.Close(ctx)
}

var bothSlots = []string{"a", "b"}

func (p *postgres) user(name, slot string) string { return name + "." + slot }

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func (p *postgres) slots(ctx context.Context, name string) (slots []string, err error) {
	for _, slot := range bothSlots {
		var can bool
		err := p.QueryRow(ctx, `SELECT rolcanlogin FROM pg_roles WHERE rolname = $1`, p.user(name, slot)).Scan(&can)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, p.failed("reading roles", err)
		}
		if can {
			slots = append(slots, slot)
		}
	}
	return slots, nil
}

func (p *postgres) set(ctx context.Context, name string, logins []credential) error {
	if len(logins) > 0 {
		if err := p.own(ctx, name); err != nil {
			return err
		}
	}
	of := map[string]credential{}
	for _, l := range logins {
		of[l.Slot] = l
	}
	var ended []string
	err := pgx.BeginFunc(ctx, p.Conn, func(tx pgx.Tx) error {
		for _, slot := range bothSlots {
			user := p.user(name, slot)
			there, err := p.role(ctx, user)
			l, works := of[slot]
			switch {
			case err != nil:
			case works:
				err = allow(ctx, tx, name, user, l.Password, there)
			case there:
				ended = append(ended, user)
				_, err = tx.Exec(ctx, fmt.Sprintf(`ALTER ROLE %s NOLOGIN PASSWORD NULL`, quoted(user)))
			}
			if err != nil {
				return p.failed("role "+user, err)
			}
		}
		return nil
	})
	for _, user := range ended {
		if err == nil {
			_, err = p.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1`, user)
		}
	}
	return p.failed("database "+name, err)
}

// allow has a role log in by a password, as the owner of a database.
func allow(ctx context.Context, tx pgx.Tx, owner, user, password string, there bool) error {
	if !there && password == "" {
		return nil // the server has lost it, too
	}
	statement := "ALTER ROLE %s LOGIN"
	if !there {
		statement = "CREATE ROLE %s LOGIN"
	}
	if password != "" {
		statement += " PASSWORD '" + verifier(password) + "'"
	}
	for _, s := range []string{
		fmt.Sprintf(statement, quoted(user)),
		fmt.Sprintf(`GRANT %s TO %s`, quoted(owner), quoted(user)),
		fmt.Sprintf(`GRANT %s TO CURRENT_USER`, quoted(user)),
		fmt.Sprintf(`ALTER ROLE %s SET role = %s`, quoted(user), quoted(owner)),
	} {
		if _, err := tx.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// role is whether there is one of a name. One that may do more than own a database, or log in
// there, is somebody else's: who acts as it would get all of that.
func (p *postgres) role(ctx context.Context, name string) (there bool, err error) {
	var more bool
	err = p.QueryRow(ctx, `SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls FROM pg_roles WHERE rolname = $1`, name).Scan(&more)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if more {
		return false, errors.New("it may do more than have a database, so it is another's: rename it")
	}
	return err == nil, err
}

// own makes a database and the role that owns it, where they are not there. Nobody else
// connects to it.
func (p *postgres) own(ctx context.Context, name string) error {
	there, err := p.role(ctx, name)
	if err == nil && !there {
		_, err = p.Exec(ctx, fmt.Sprintf(`CREATE ROLE %s`, quoted(name)))
	}
	if err == nil {
		_, err = p.Exec(ctx, fmt.Sprintf(`GRANT %s TO CURRENT_USER`, quoted(name)))
	}
	if err != nil {
		return p.failed("role "+name, err)
	}
	var owner string
	err = p.QueryRow(ctx, `SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = $1`, name).Scan(&owner)
	if errors.Is(err, pgx.ErrNoRows) {
		owner = name
		_, err = p.Exec(ctx, fmt.Sprintf(`CREATE DATABASE %s OWNER %s`, quoted(name), quoted(name)))
	}
	if err == nil && owner != name {
		err = fmt.Errorf("it is there, owned by role %[1]q: rename it, or hand it over, ALTER DATABASE %[2]s OWNER TO %[2]s;", owner, quoted(name))
	}
	if err == nil {
		_, err = p.Exec(ctx, fmt.Sprintf(`REVOKE ALL ON DATABASE %s FROM PUBLIC`, quoted(name)))
	}
	return p.failed("database "+name, err)
}

func (p *postgres) drop(ctx context.Context, name string) error {
	_, err := p.Exec(ctx, fmt.Sprintf(`DROP DATABASE IF EXISTS %s WITH (FORCE)`, quoted(name)))
	for _, role := range []string{p.user(name, "a"), p.user(name, "b"), name} {
		_, failed := p.Exec(ctx, fmt.Sprintf(`DROP ROLE IF EXISTS %s`, quoted(role)))
		err = cmp.Or(err, failed)
	}
	return p.failed("database "+name, err)
}
