package database

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
)

// does runs statements as a login, on a new connection.
func does(t *testing.T, has map[string]string, statements ...string) error {
	t.Helper()
	conn, err := connect(t.Context(), has["url"])
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			return err
		}
	}
	return nil
}

// must runs statements as a login.
func must(t *testing.T, has map[string]string, statements ...string) {
	t.Helper()
	if err := does(t, has, statements...); err != nil {
		t.Fatal(err)
	}
}

// root is a superuser's login at the server.
func root(s serveraccount.Server) map[string]string {
	return map[string]string{"url": postgresURL(s.Address, "root", rootPassword, "postgres")}
}

// TestRotations checks that an application whose pool keeps opening connections survives three
// rotations without a failed statement, although its host learns of each rotation late.
func TestRotations(t *testing.T) {
	t.Parallel()
	s, dir := postgresAt(t)
	f := newFixture(t, s, dir, "pool_main")
	var has atomic.Value
	has.Store(f.Reads())
	ctx, cancel := context.WithCancel(t.Context())
	must(t, has.Load().(map[string]string), `CREATE TABLE log (n serial, who text)`)
	var pool sync.WaitGroup
	defer pool.Wait()
	defer cancel()
	var rounds [2]atomic.Int64
	for i := range rounds {
		pool.Go(func() {
			for ; ctx.Err() == nil; rounds[i].Add(1) {
				conn, err := connect(context.Background(), has.Load().(map[string]string)["url"])
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					if _, err := conn.Exec(context.Background(), `INSERT INTO log (who) VALUES (session_user)`); err != nil {
						t.Error(err)
					}
				}
				conn.Close(context.Background())
			}
		})
	}
	late := func() { // each client has opened a new connection and closed all earlier ones
		for i := range rounds {
			before := rounds[i].Load()
			kit.Eventually(t, "two more rounds", func() bool { return rounds[i].Load() >= before+2 || t.Failed() })
		}
	}
	seen := map[string]bool{has.Load().(map[string]string)["password"]: true}
	for i := range 3 {
		if i == 1 {
			f.Grant.Generation++ // by hand
		} else {
			f.Now = f.Now.Add(rotated) // by age
		}
		next := f.Reads()
		if seen[next["password"]] || next["user"] == has.Load().(map[string]string)["user"] {
			t.Fatalf("rotation %d: the login of before", i)
		}
		seen[next["password"]] = true
		f.Passes(overlap - time.Minute)
		if f.Reads()["password"] != next["password"] {
			t.Errorf("rotation %d: another login within the overlap", i)
		}
		late() // with the former login
		former := has.Load().(map[string]string)
		// Objects that the login in use creates can be altered by the next login.
		must(t, former, fmt.Sprintf(`ALTER TABLE log ADD COLUMN c%d int`, i))
		open, err := connect(t.Context(), former["url"])
		if err != nil {
			t.Fatal(err)
		}
		has.Store(next)
		late() // connections with the former login have ended
		f.Passes(2 * time.Minute)
		if _, err := open.Exec(t.Context(), `SELECT 1`); err == nil {
			t.Errorf("rotation %d: a connection of the former login is still open", i)
		}
		if err := does(t, former); err == nil {
			t.Errorf("rotation %d: the former login works after the overlap", i)
		}
		must(t, next, fmt.Sprintf(`ALTER TABLE log DROP COLUMN c%d`, i))
		late()
	}
	cancel()
	pool.Wait()
}

// TestCutOff checks that if a process or server dies between two steps, the next request gives a
// login that works, the former login works until its time is over, and no login is lost.
func TestCutOff(t *testing.T) {
	t.Parallel()
	s, dir := postgresAt(t)
	f := newFixture(t, s, dir, "cut_main")
	// Before the first answer is committed.
	first, err := f.Decide()
	if err != nil {
		t.Fatal(err)
	}
	must(t, first.Answer.Values)
	if again := f.Reads(); again["password"] != first.Answer.Values["password"] {
		t.Fatal("another login after a crash before the commit")
	}
	// After the store has the login and before the server has it: the server is away.
	f.Grant.Generation = 2
	away := s
	away.Address = "127.0.0.1:1"
	want := f.want
	want.Generation = 2
	var decided record
	err = f.At(t.Context(), s, want.Of(), func(ctx context.Context, b backend) (err error) {
		decided, err = f.due(ctx, b, f.Now, want)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	must(t, first.Answer.Values)
	f.servers["main"] = away
	f.Refused()
	f.passesAway(t, 10*overlap) // no host has the next login, so the former one stays valid
	f.servers["main"] = s
	f.Passes(time.Minute)
	must(t, first.Answer.Values)
	second := f.Reads()
	if second["password"] != decided.Secrets["b"] || second["user"] != "cut_main.b" {
		t.Error("the answer is not what was decided before the crash")
	}
	must(t, second)
	must(t, first.Answer.Values) // the overlap begins
	f.Passes(overlap + time.Minute)
	if does(t, first.Answer.Values) == nil {
		t.Error("the former login works after the overlap")
	}
	must(t, second)
}

// passesAway lets time pass while a server is away.
func (f *fixture) passesAway(t *testing.T, d time.Duration) {
	f.Now = f.Now.Add(d)
	f.Sweep(t.Context(), f.Now, f.Compiled())
}

// TestLost checks that without its state, or with a state from a backup, the provider makes another
// login. The login that hosts have works for another overlap.
func TestLost(t *testing.T) {
	t.Parallel()
	s, dir := postgresAt(t)
	for name, keeps := range map[string]bool{"lost_main": false, "restored_main": true} {
		f := newFixture(t, s, dir, name)
		f.Reads()
		f.Grant.Generation = 2
		f.Reads() // the login of slot b
		f.Passes(2 * overlap)
		has := f.Reads()
		must(t, has, `CREATE TABLE precious (n int)`)
		e, err := f.Store.Get(t.Context(), serveraccount.Prefix(Name)+"main/"+name)
		if err != nil {
			t.Fatal(err)
		}
		f.lose(dir)
		if keeps {
			if _, err := f.Store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(e.Key, e.Value)}}); err != nil {
				t.Fatal(err)
			}
		}
		next := f.Reads()
		if next["password"] == has["password"] || next["user"] == has["user"] {
			t.Errorf("%s: the login that hosts have was replaced", name)
		}
		must(t, has)
		must(t, next, `DROP TABLE precious`)
		f.Passes(overlap + time.Minute)
		must(t, next)
		if does(t, has) == nil {
			t.Errorf("%s: the former login works after the overlap", name)
		}
	}
}

// TestVanished checks that a login that a server has lost is made again without a request, with the
// password that the host has.
func TestVanished(t *testing.T) {
	t.Parallel()
	everyPostgres(t, func(t *testing.T, s serveraccount.Server, dir string) {
		f := newFixture(t, s, dir, "vanished_main")
		has := f.Reads()
		for i, lose := range [][]string{
			{`ALTER ROLE "vanished_main.a" NOLOGIN`},
			{`DROP ROLE "vanished_main.a"`},
			{`DROP DATABASE vanished_main`, `DROP ROLE "vanished_main.a"`, `DROP ROLE vanished_main`},
		} {
			must(t, root(s), lose...)
			if does(t, has) == nil {
				t.Fatalf("%q: it logs in", lose)
			}
			f.Passes(time.Minute)
			must(t, has)
			if got := f.acts(CodeRestored); got != i+1 {
				t.Errorf("%d rows of what was made anew, want %d", got, i+1)
			}
		}
	})
}

// TestConnections checks that one login can use only a part of the server's connections, whatever
// its limit was before, unless an administrator chose another limit.
func TestConnections(t *testing.T) {
	t.Parallel()
	everyPostgres(t, func(t *testing.T, s serveraccount.Server, dir string) {
		f := newFixture(t, s, dir, "greedy_main")
		has := f.Reads()
		is := func(want int) {
			t.Helper()
			conn, err := connect(t.Context(), root(s)["url"])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			var got int
			if err := conn.QueryRow(t.Context(), `SELECT rolconnlimit FROM pg_roles WHERE rolname = 'greedy_main.a'`).Scan(&got); err != nil || got != want {
				t.Errorf("%d connections, %v, want %d", got, err, want)
			}
		}
		is((200 - 3) / 4)
		must(t, root(s), `ALTER ROLE "greedy_main.a" CONNECTION LIMIT -1`)
		f.Passes(time.Minute)
		is((200 - 3) / 4)
		if err := does(t, has, `ALTER ROLE SESSION_USER CONNECTION LIMIT -1`); err == nil {
			t.Error("a login lifts its own bound")
		}
		must(t, root(s), `ALTER ROLE "greedy_main.a" CONNECTION LIMIT 2`)
		f.Passes(time.Minute)
		is(2)
		open, err := connect(t.Context(), has["url"])
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close(context.Background())
		second, err := connect(t.Context(), has["url"])
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close(context.Background())
		if err := does(t, has); err == nil || !strings.Contains(err.Error(), "too many connections for role") {
			t.Errorf("a third connection of two: %v", err)
		}
	})
}

// TestRemoved checks that nobody can log in to a database that left the topology. If the topology
// names it again, its data is unchanged; otherwise it is deleted after a time.
func TestRemoved(t *testing.T) {
	t.Parallel()
	s, dir := postgresAt(t)
	f := newFixture(t, s, dir, "gone_main")
	has := f.Reads()
	must(t, has, `CREATE TABLE precious (n int)`)
	open, err := connect(t.Context(), has["url"])
	if err != nil {
		t.Fatal(err)
	}
	granted := f.Grant
	f.Grant.Kind = ""
	f.Passes(time.Minute)
	if does(t, has) == nil {
		t.Error("it logs in although no policy names the database")
	}
	if _, err := open.Exec(t.Context(), `SELECT 1`); err == nil {
		t.Error("a connection is still open although no policy names the database")
	}
	f.Passes(29 * 24 * time.Hour)
	f.wantActs(1, 0)
	f.Grant = granted
	f.Passes(time.Minute)
	must(t, has, `SELECT * FROM precious`)
	f.Grant.Kind = ""
	f.Passes(time.Minute)
	f.Passes(29 * 24 * time.Hour)
	must(t, map[string]string{"url": postgresURL(s.Address, "root", rootPassword, "gone_main")})
	f.Passes(2 * 24 * time.Hour)
	if does(t, map[string]string{"url": postgresURL(s.Address, "root", rootPassword, "gone_main")}) == nil {
		t.Error("the database is there after 30 days")
	}
	f.wantActs(2, 1)
	if rest, _, err := f.Store.List(t.Context(), "database/"); err != nil || len(rest) != 0 {
		t.Errorf("what is left in the store: %v, %v", rest, err)
	}
	must(t, root(s), `CREATE ROLE "gone_main"`, `DROP ROLE "gone_main"`) // no role is left
	f.Grant = granted
	if err := does(t, f.Reads(), `SELECT * FROM precious`); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("named again after that: %v, want an empty database", err)
	}
}

// TestChangedMeanwhile checks that a sweep does not act on a state that a request has changed since
// the sweep read it.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s, dir := postgresAt(t)
	f := newFixture(t, s, dir, "meanwhile_main")
	f.Reads()
	for _, changed := range []bool{false, true} {
		var r record
		if err := f.Read(t.Context(), f.want.Of(), &r); err != nil {
			t.Fatal(err)
		}
		if changed {
			f.Grant.Generation++
			f.Reads()
		}
		worked := false
		err := f.AtSame(t.Context(), s, f.want.Of(), &r, func(context.Context, backend) error {
			worked = true
			return nil
		})
		if err != nil || worked == changed {
			t.Errorf("changed %t, worked on %t, %v", changed, worked, err)
		}
	}
}

// TestOthers checks that a login can neither enter another service's database nor create roles.
func TestOthers(t *testing.T) {
	t.Parallel()
	s, dir := postgresAt(t)
	one, two := newFixture(t, s, dir, "one_main").Reads(), newFixture(t, s, dir, "two_main").Reads()
	must(t, one, `CREATE TABLE t (n int)`)
	into := strings.TrimSuffix(two["url"], "two_main") + "one_main"
	if err := does(t, map[string]string{"url": into}); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("into the database of another: %v, want it refused", err)
	}
	for _, s := range []string{`CREATE ROLE evil`, `CREATE DATABASE evil`, `SET ROLE florete`, `SET ROLE one_main`, `ALTER ROLE "two_main.a" SUPERUSER`} {
		if err := does(t, two, s); err == nil {
			t.Errorf("%s: done", s)
		}
	}
}

// TestNames checks that no part of a name is executed as SQL.
func TestNames(t *testing.T) {
	t.Parallel()
	s, _ := postgresAt(t)
	for _, name := range []string{`o'reilly"; DROP DATABASE postgres; --`, `$$; DROP ROLE florete; $$`, "Ünï\\code\n"} {
		b, err := openPostgres(t.Context(), s, adminPassword)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.set(t.Context(), name, []credential{{"a", "pw"}}); err != nil {
			t.Fatal(err)
		}
		conn, err := connect(t.Context(), values(serveraccount.Server{Kind: postgresKind, Host: s.Host, Port: s.Port}, name, b.user(name, "a"), "pw")["url"])
		if err != nil {
			t.Fatal(err)
		}
		var database, user string
		if err := conn.QueryRow(t.Context(), `SELECT current_database(), current_user`).Scan(&database, &user); err != nil || database != name || user != name {
			t.Errorf("%q: logged in at %q as %q, %v", name, database, user, err)
		}
		conn.Close(t.Context())
		if err := b.drop(t.Context(), name); err != nil {
			t.Error(err)
		}
		b.Close()
	}
	must(t, root(s), `ALTER ROLE florete CREATEROLE`)
}

// TestServerStates checks that a refusal names the problem of the server and the remedy.
func TestServerStates(t *testing.T) {
	t.Parallel()
	s, dir := postgresAt(t)
	must(t, root(s), `CREATE ROLE powerless LOGIN PASSWORD 'x'`, `CREATE DATABASE taken_main`, `CREATE ROLE mighty_main CREATEROLE`)
	for name, of := range map[string]struct {
		edit func(s *serveraccount.Server, dir string)
		want string
	}{
		"away_main":   {func(s *serveraccount.Server, _ string) { s.Address = "127.0.0.1:1" }, "connection refused"},
		"socket_main": {func(s *serveraccount.Server, _ string) { s.Address = "unix:/nowhere/.s.PGSQL.5432" }, "no such file"},
		"remote_main": {func(s *serveraccount.Server, _ string) { s.Address = "192.0.2.1:5432" }, "secrets would cross the network in clear"},
		"wrong_main": {func(_ *serveraccount.Server, dir string) {
			os.WriteFile(filepath.Join(dir, "main"), []byte("wrong"), 0o600)
		},
			`password authentication failed for user "florete"`},
		"without_main": {func(_ *serveraccount.Server, dir string) { os.Remove(filepath.Join(dir, "main")) }, "there is none in"},
		"powerless_main": {func(s *serveraccount.Server, dir string) {
			s.User = "powerless"
			os.WriteFile(filepath.Join(dir, "main"), []byte("x"), 0o600)
		}, `ALTER ROLE "powerless" CREATEROLE CREATEDB;`},
		"taken_main":  {func(*serveraccount.Server, string) {}, `owned by role "root": rename it, or hand it over, ALTER DATABASE "taken_main" OWNER TO "taken_main";`},
		"mighty_main": {func(*serveraccount.Server, string) {}, "so it is another's: rename it"},
	} {
		here := t.TempDir()
		b, err := os.ReadFile(filepath.Join(dir, "main"))
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(here, "main"), b, 0o600)
		s := s
		of.edit(&s, here)
		if got := newFixture(t, s, here, name).Refused(); !strings.Contains(got, of.want) || strings.Contains(got, adminPassword) {
			t.Errorf("%s: %q, want %q in it, and no password", name, got, of.want)
		}
	}
}

// TestSecrets checks that passwords appear neither in the log of a database server that logs all
// statements, nor in the provider's store.
func TestSecrets(t *testing.T) {
	t.Parallel()
	s, dir := postgresAt(t)
	f := newFixture(t, s, dir, "secret_main")
	first := f.Reads()
	f.Grant.Generation = 2
	second := f.Reads()
	log, err := os.ReadFile(postgresServer().log)
	if err != nil || !strings.Contains(string(log), `CREATE ROLE "secret_main.a"`) {
		t.Fatalf("the server's log lacks statements, %v", err)
	}
	rows, _, err := f.Store.List(t.Context(), "")
	if err != nil || len(rows) < 2 {
		t.Fatal(rows, err)
	}
	for _, has := range []map[string]string{first, second} {
		if strings.Contains(string(log), has["password"]) {
			t.Error("the server's log has a password")
		}
		for _, e := range rows {
			if strings.Contains(string(e.Value), has["password"]) {
				t.Errorf("%s has a password that can be read", e.Key)
			}
		}
	}
	var kept string
	conn, err := connect(t.Context(), root(s)["url"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), `SELECT rolpassword FROM pg_authid WHERE rolname = 'secret_main.b'`).Scan(&kept); err != nil || kept != verifier(second["password"]) {
		t.Errorf("the server keeps %q, %v", kept, err)
	}
}
