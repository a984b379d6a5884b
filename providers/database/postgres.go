package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/florete/florete/providers/serveraccount"
)

// postgres is a connection to a PostgreSQL server, version 13 or newer. A role that cannot log in
// owns each database and everything in it, and has the database's name. The roles that log in are
// members of the owner. They act as the owner from the first statement on, so that each can alter
// and drop objects that another login made.
type postgres struct {
	*pgx.Conn
	admin string
	limit int // most connections of one login
}

var _ backend = (*postgres)(nil)

func openPostgres(ctx context.Context, s serveraccount.Server, password string) (backend, error) {
	// Variables of the environment cannot replace the values in this string.
	config, err := pgx.ParseConfig("host=localhost port=5432 user=florete dbname=postgres sslmode=disable passfile=/dev/null connect_timeout=10")
	if err != nil {
		return nil, err
	}
	config.User, config.Password, config.Fallbacks = s.User, password, nil
	// Unqualified names refer to PostgreSQL's own objects, because an object that a login made in a
	// schema would run with the privileges of this role. Statements do not wait for a login's
	// locks.
	config.RuntimeParams = map[string]string{"search_path": "", "lock_timeout": lockTimeout.String()}
	config.MaxProtocolMessageBodyLen = 1 << 20
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return serveraccount.Dial(ctx, s.Address) }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", cause(err))
	}
	p := &postgres{Conn: conn, admin: s.User}
	if err := p.prepare(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// lockTimeout is the longest time that a statement waits for a lock of another session.
const lockTimeout = 2 * time.Second

// prepare returns an error if the provider's role lacks a privilege that it needs. It also closes
// the standard databases, to which every login could otherwise connect.
func (p *postgres) prepare(ctx context.Context) error {
	var super, roles, databases, open bool
	err := p.QueryRow(ctx, `SELECT rolsuper, rolcreaterole, rolcreatedb FROM pg_catalog.pg_roles WHERE rolname = current_user`).Scan(&super, &roles, &databases)
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
		// One login takes no more than a quarter, so that others can connect, the provider too, and
		// a service with a login of before a rotation leaves half.
		err = p.QueryRow(ctx, `SELECT GREATEST(1, (pg_catalog.current_setting('max_connections')::int - pg_catalog.current_setting('superuser_reserved_connections')::int) / 4)`).Scan(&p.limit)
	}
	if err == nil {
		err = p.close(ctx)
	}
	// In clusters made by PostgreSQL 14 or older, everybody may write to the schema public.
	if err == nil {
		err = p.QueryRow(ctx, `SELECT pg_catalog.has_database_privilege('public', pg_catalog.current_database(), 'CONNECT') AND pg_catalog.bool_or(pg_catalog.has_schema_privilege('public', oid, 'CREATE'))
			FROM pg_catalog.pg_namespace WHERE nspname = 'public'`).Scan(&open)
	}
	if err == nil && open {
		return fmt.Errorf(`every login may connect to database "postgres" and write to its schema "public": as a superuser there, `+
			`REVOKE CREATE ON SCHEMA public FROM PUBLIC; REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC; GRANT CONNECT ON DATABASE postgres TO %s;`, quoted(p.admin))
	}
	return cause(err)
}

// close revokes the right of PUBLIC to connect to the standard databases. Only a superuser or the
// owner of these databases can do so. If the provider's role is neither, an administrator must do
// it.
func (p *postgres) close(ctx context.Context) error {
	rows, err := p.Query(ctx, `SELECT datname::pg_catalog.text FROM pg_catalog.pg_database
		WHERE datname IN ('postgres', 'template1') AND pg_catalog.has_database_privilege('public', oid, 'CONNECT') AND pg_catalog.pg_has_role(datdba, 'USAGE')`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		for _, s := range []string{`GRANT CONNECT ON DATABASE %s TO CURRENT_USER`, `REVOKE CONNECT ON DATABASE %s FROM PUBLIC`} {
			if err == nil {
				_, err = p.Exec(ctx, fmt.Sprintf(s, quoted(name)))
			}
		}
	}
	return err
}

// cause returns the cause of a pgx error, without the context that pgx adds to its message.
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

// failed adds the purpose of a statement to its error. It returns nil if there is no error.
func (p *postgres) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return serveraccount.Errorf("PostgreSQL: %s: %w", doing, cause(err))
}

func (p *postgres) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), serveraccount.Deadline/5)
	defer cancel()
	return p.Conn.Close(ctx)
}

var bothSlots = []string{"a", "b"}

func (p *postgres) user(name, slot string) string { return name + "." + slot }

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func (p *postgres) slots(ctx context.Context, name string) (slots []string, err error) {
	for _, slot := range bothSlots {
		r, err := p.role(ctx, p.user(name, slot))
		if err != nil {
			return nil, p.failed("reading roles", err)
		}
		if r.login {
			slots = append(slots, slot)
		}
	}
	return slots, nil
}

func (p *postgres) works(ctx context.Context, name string, logins []credential) (bool, error) {
	for _, l := range logins {
		r, err := p.role(ctx, p.user(name, l.Slot))
		if err != nil || !r.login || r.unlimited {
			return false, p.failed("reading roles", err)
		}
	}
	var there bool
	err := p.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = $1::pg_catalog.name AND datallowconn)`, name).Scan(&there)
	return there, p.failed("reading databases", err)
}

// set changes the logins of a database at the server. It ends logins first, because a login in use
// may hold locks that the other changes need.
func (p *postgres) set(ctx context.Context, name string, logins []credential) error {
	of := map[string]credential{}
	for _, l := range logins {
		of[l.Slot] = l
	}
	roles := map[string]role{}
	for _, slot := range bothSlots {
		user := p.user(name, slot)
		r, err := p.role(ctx, user)
		if _, works := of[slot]; err == nil && r.there && !works {
			err = p.shut(ctx, user, r.oid)
		}
		if err != nil {
			return p.failed("role "+user, err)
		}
		roles[slot] = r
	}
	if len(logins) == 0 {
		return nil
	}
	if err := p.own(ctx, name); err != nil {
		return err
	}
	return p.failed("database "+name, pgx.BeginFunc(ctx, p.Conn, func(tx pgx.Tx) error {
		for _, l := range logins {
			user := p.user(name, l.Slot)
			if err := p.allow(ctx, tx, name, user, l.Password, roles[l.Slot]); err != nil {
				return p.failed("role "+user, err)
			}
		}
		return nil
	}))
}

// shut disables a role and ends its connections in one message. If a login changes its own password
// in a transaction that it never ends, the login locks the row of its role. Ending the connections
// releases that lock.
func (p *postgres) shut(ctx context.Context, user string, oid uint32) error {
	end := fmt.Sprintf(`SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE usesysid = %d`, oid)
	for {
		err := p.simple(ctx, fmt.Sprintf(`%s; ALTER ROLE %s NOLOGIN PASSWORD NULL`, end, quoted(user)))
		if err == nil {
			break
		}
		// Before PostgreSQL 16 a login may take from the provider that it is a member of the
		// login's role, and the provider may make itself a member of this one. Later neither may.
		_ = p.simple(ctx, `GRANT pg_signal_backend TO CURRENT_USER`)
		if pause(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
	// A connection that was being accepted appears a moment later.
	for quiet := 0; quiet < 2; quiet++ {
		tag, err := p.Exec(ctx, end)
		if err != nil {
			return err
		}
		if tag.RowsAffected() > 0 {
			quiet = -1
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// simple sends several statements as one message. The server runs them in one transaction.
func (p *postgres) simple(ctx context.Context, statements string) error {
	return p.PgConn().Exec(ctx, statements).Close()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// allow lets a role log in with a password and act as the owner of a database. It keeps a
// connection limit that an administrator has set.
func (p *postgres) allow(ctx context.Context, tx pgx.Tx, owner, user, password string, is role) error {
	if !is.there && password == "" {
		return nil // the server has lost the role, too
	}
	statement := "ALTER ROLE %s LOGIN"
	if !is.there {
		statement = "CREATE ROLE %s LOGIN"
	}
	if !is.there || is.unlimited {
		statement += fmt.Sprintf(" CONNECTION LIMIT %d", p.limit)
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

// role describes a role at the server.
type role struct {
	oid          uint32
	there, login bool
	unlimited    bool // without a connection limit
}

// role returns the role of the given name at the server. It refuses a role that may do more than
// own a database or log in to it. Such a role belongs to somebody else, and a login would gain the
// rights of the role.
func (p *postgres) role(ctx context.Context, name string) (r role, err error) {
	var more bool
	err = p.QueryRow(ctx, `SELECT oid, rolcanlogin, rolconnlimit < 0, rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls
		FROM pg_catalog.pg_roles WHERE rolname = $1::pg_catalog.name`, name).Scan(&r.oid, &r.login, &r.unlimited, &more)
	if errors.Is(err, pgx.ErrNoRows) {
		return role{}, nil
	}
	if err == nil && more {
		err = errors.New("it may do more than have a database, so it is another's: rename it")
	}
	r.there = err == nil
	return r, err
}

// own makes a database and its owner, unless they exist. From the start, only members of the owner
// can connect to the database. The database is made from template0, to which nobody can connect. A
// login in template1 could prevent new databases and, before PostgreSQL 15, leave functions in all
// of them.
func (p *postgres) own(ctx context.Context, name string) error {
	r, err := p.role(ctx, name)
	if err == nil && !r.there {
		_, err = p.Exec(ctx, fmt.Sprintf(`CREATE ROLE %s`, quoted(name)))
	}
	if err == nil {
		_, err = p.Exec(ctx, fmt.Sprintf(`GRANT %s TO CURRENT_USER`, quoted(name)))
	}
	if err != nil {
		return p.failed("role "+name, err)
	}
	var owner string
	var opens, public bool
	found := func() error {
		return p.QueryRow(ctx, `SELECT pg_catalog.pg_get_userbyid(datdba)::pg_catalog.text, datallowconn, pg_catalog.has_database_privilege('public', oid, 'CONNECT')
			FROM pg_catalog.pg_database WHERE datname = $1::pg_catalog.name`, name).Scan(&owner, &opens, &public)
	}
	err = found()
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = p.Exec(ctx, fmt.Sprintf(`CREATE DATABASE %s OWNER %[1]s TEMPLATE template0 ALLOW_CONNECTIONS false`, quoted(name)))
		if err == nil {
			err = found()
		}
	}
	if err == nil && owner != name {
		err = fmt.Errorf("it is there, owned by role %[1]q: rename it, or hand it over, ALTER DATABASE %[2]s OWNER TO %[2]s;", owner, quoted(name))
	}
	if err == nil {
		closed := fmt.Sprintf(`REVOKE ALL ON DATABASE %s FROM PUBLIC`, quoted(name))
		if public && !opens { // just made, or left open by an interruption
			closed += fmt.Sprintf(`; ALTER DATABASE %s ALLOW_CONNECTIONS true`, quoted(name))
		}
		err = p.simple(ctx, closed)
	}
	return p.failed("database "+name, err)
}

// drop removes a database and its roles. A role stays if another database refers to it, because the
// login was granted a right there. The role can then no longer log in.
func (p *postgres) drop(ctx context.Context, name string) error {
	_, err := p.Exec(ctx, fmt.Sprintf(`DROP DATABASE IF EXISTS %s WITH (FORCE)`, quoted(name)))
	for _, role := range []string{p.user(name, "a"), p.user(name, "b"), name} {
		_, failed := p.Exec(ctx, fmt.Sprintf(`DROP ROLE IF EXISTS %s`, quoted(role)))
		var of *pgconn.PgError
		if errors.As(failed, &of) && (of.Code == mentioned || of.Code == locked) {
			failed = nil
		}
		err = cmp.Or(err, failed)
	}
	return p.failed("database "+name, err)
}

// These are error codes of PostgreSQL.
const (
	mentioned = "2BP01" // dependent_objects_still_exist
	locked    = "55P03" // lock_not_available
)
