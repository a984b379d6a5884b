package database

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/florete/florete/providers/serveraccount"
)

// opens a connection with a login, which ends with the test.
func opens(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// in is a login's URL of another database.
func in(has map[string]string, database string) map[string]string {
	return map[string]string{"url": strings.TrimSuffix(has["url"], has["database"]) + database}
}

// TestShadows checks that nothing that a login creates at the server runs with the rights of the
// provider: each name that the provider uses is PostgreSQL's own.
func TestShadows(t *testing.T) {
	everyPostgres(t, func(t *testing.T, s serveraccount.Server, dir string) {
		evil := newFixture(t, s, dir, "shadow_main")
		has := evil.Reads()
		prey := newFixture(t, s, dir, "prey_main")
		prey.Reads()
		must(t, root(s), `GRANT CREATE ON SCHEMA public TO "shadow_main.a"`) // as to everybody before PostgreSQL 15
		as := in(has, "postgres")
		for _, f := range []string{
			`pg_advisory_lock(text, int) RETURNS void`, `pg_advisory_lock(int, int) RETURNS void`, `hashtext(text) RETURNS int`, `current_database() RETURNS name`,
			`pg_terminate_backend(int) RETURNS bool`, `pg_get_userbyid(oid) RETURNS name`, `has_database_privilege(text, oid, text) RETURNS bool`, `has_database_privilege(text, text, text) RETURNS bool`,
			`has_schema_privilege(text, oid, text) RETURNS bool`, `pg_has_role(oid, text) RETURNS bool`, `bool_or(bool) RETURNS bool`,
			`same(name, text) RETURNS bool`,
		} {
			returns := "RETURN NULL"
			if strings.HasSuffix(f, "void") {
				returns = "RETURN"
			}
			must(t, as, `SET ROLE NONE; CREATE FUNCTION public.`+f+` LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'GRANT prey_main TO shadow_main'; `+returns+`; END $$`)
		}
		must(t, as, `SET ROLE NONE; CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.same)`)
		for _, table := range []string{"pg_roles", "pg_database", "pg_stat_activity", "pg_namespace"} {
			must(t, as, `SET ROLE NONE; CREATE TABLE public.`+table+` (n int)`)
		}
		prey.Grant.Generation++
		prey.Reads()
		evil.Grant.Generation++
		evil.Reads()
		evil.Passes(2 * overlap)
		evil.Grant.Kind = ""
		evil.Passes(time.Minute)
		conn := opens(t, root(s)["url"])
		var member bool
		if err := conn.QueryRow(t.Context(), `SELECT pg_has_role('shadow_main', 'prey_main', 'MEMBER')`).Scan(&member); err != nil || member {
			t.Errorf("a login's function ran as the provider: member %t, %v", member, err)
		}
	})
}

// TestWritableByAll checks that a server is refused, with the remedy, if every login may write to
// the database to which the provider connects, and is accepted after the remedy.
func TestWritableByAll(t *testing.T) {
	t.Parallel()
	s, dir := newPostgres().at(t, postgresKind, "postgresql", adminPassword)
	must(t, root(s), `GRANT CREATE ON SCHEMA public TO PUBLIC`) // as PostgreSQL 14 has it
	f := newFixture(t, s, dir, "writable_main")
	got := f.Refused()
	_, remedy, _ := strings.Cut(got, "as a superuser there, ")
	if !strings.Contains(got, "every login may connect") || !strings.HasPrefix(remedy, "REVOKE CREATE ON SCHEMA public FROM PUBLIC;") {
		t.Fatalf("%q, want what to do", got)
	}
	must(t, root(s), remedy)
	has := f.Reads()
	must(t, has, `SELECT 1`)
	for _, database := range []string{"postgres", "template1"} {
		if err := does(t, in(has, database)); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("a login in database %s: %v", database, err)
		}
	}
	// A provider that owns the server's own databases takes CONNECT from everybody itself.
	must(t, root(s), `GRANT CREATE ON SCHEMA public TO PUBLIC`, `GRANT CONNECT ON DATABASE postgres, template1 TO PUBLIC`, `ALTER DATABASE postgres OWNER TO florete`, `ALTER DATABASE template1 OWNER TO florete`)
	f.Grant.Generation++
	has = f.Reads()
	for _, database := range []string{"postgres", "template1"} {
		if err := does(t, in(has, database)); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("a login in database %s: %v", database, err)
		}
	}
}

// TestHolds checks that a service that holds as many connections and locks as it can neither keeps
// its login after it left the topology, nor prevents others from getting logins.
func TestHolds(t *testing.T) {
	everyPostgres(t, func(t *testing.T, s serveraccount.Server, dir string) {
		evil, other := newFixture(t, s, dir, "holds_main"), newFixture(t, s, dir, "held_main")
		has := evil.Reads()
		first := other.Reads()
		own, maintenance := opens(t, has["url"]), opens(t, in(has, "postgres")["url"])
		for _, lock := range []string{"hashtext('holds_main')", "hashtext('held_main')"} {
			if _, err := maintenance.Exec(t.Context(), `SELECT pg_advisory_lock(1718382450, `+lock+`)`); err != nil {
				t.Fatal(err)
			}
		}
		opens(t, in(has, "template1")["url"]) // the template of new databases
		held := []string{
			`SET ROLE NONE`, `BEGIN`,
			fmt.Sprintf(`ALTER ROLE "holds_main.a" PASSWORD '%s'`, has["password"]),
			`SET ROLE holds_main`, `CREATE TABLE t (n int)`, `GRANT SELECT ON t TO held_main`, `GRANT SELECT ON t TO "held_main.a"`,
			`LOCK TABLE pg_catalog.pg_database, pg_catalog.pg_auth_members IN ACCESS SHARE MODE`,
		}
		for _, statement := range held {
			if _, err := own.Exec(t.Context(), statement); err != nil {
				t.Fatal(statement, err)
			}
		}
		// Other logins can be rotated and created.
		other.Grant.Generation++
		if next := other.Reads(); next["password"] == first["password"] {
			t.Error("the other service has no other login")
		}
		must(t, newFixture(t, s, dir, "newcomer_main").Reads(), `SELECT 1`)
		other.Passes(2 * overlap)
		if does(t, first) == nil {
			t.Error("the other service's former login works after the overlap")
		}
		// Before PostgreSQL 16 a login decides who is a member of its role.
		_ = does(t, has, `SET ROLE NONE; REVOKE "holds_main.a" FROM florete`)
		evil.Grant.Kind = ""
		evil.Passes(time.Minute)
		if does(t, has) == nil {
			t.Error("it logs in although no policy names the database")
		}
		for _, conn := range []*pgx.Conn{own, maintenance} {
			if _, err := conn.Exec(t.Context(), `SELECT 1`); err == nil {
				t.Error("a connection is still open although no policy names the database")
			}
		}
		evil.wantActs(1, 0)
	})
}

// TestMentioned checks that a grant of one service to the role of another does not prevent the
// deletion of the other service's data.
func TestMentioned(t *testing.T) {
	t.Parallel()
	s, dir := postgresAt(t)
	evil, gone := newFixture(t, s, dir, "mentions_main"), newFixture(t, s, dir, "mentioned_main")
	has := evil.Reads()
	gone.Reads()
	must(t, has, `CREATE TABLE t (n int)`, `GRANT SELECT ON t TO mentioned_main`)
	gone.Grant.Kind = ""
	gone.Passes(time.Minute)
	gone.Passes(31 * 24 * time.Hour)
	gone.wantActs(1, 1)
	if does(t, map[string]string{"url": postgresURL(s.Address, "root", rootPassword, "mentioned_main")}) == nil {
		t.Error("the database is there after 30 days")
	}
}
