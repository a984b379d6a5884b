package database

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/program"
)

// Passwords of the provider's account and of the superuser at the servers of these tests.
const (
	adminPassword = "it's the provider's"
	rootPassword  = "root of the server"
)

// stops end the servers, when all tests have.
var stops struct {
	sync.Mutex
	all []func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, stop := range stops.all {
		stop()
	}
	os.Exit(code)
}

// place is one server that runs.
type place struct {
	address, log string
	missing      error
}

// launch runs a server until the tests end, below a root of another Debian where one is given.
// PostgreSQL refuses to run as root, and is a system account then; files in dir are its own.
func launch(root, dir string, words ...string) (*exec.Cmd, string, error) {
	const daemon = 1
	drops := os.Getuid() == 0 && slices.Contains([]string{"initdb", "postgres"}, filepath.Base(words[0]))
	if drops {
		err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error { return os.Lchown(path, daemon, daemon) })
		if err != nil {
			return nil, "", err
		}
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, "", err
	}
	defer log.Close()
	for i, w := range words {
		words[i] = strings.TrimPrefix(w, root)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = strings.TrimPrefix(dir, root), log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT, Chroot: root}
	if drops {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: daemon, Gid: daemon}
	}
	return cmd, log.Name(), cmd.Start()
}

// serve runs a server for all tests, and waits until it answers.
func serve(dir string, answers func(ctx context.Context, address string) error, port, root string, words ...string) place {
	cmd, log, err := launch(root, dir, words...)
	if err != nil {
		return place{missing: err}
	}
	stops.Lock()
	stops.all = append(stops.all, func() {
		cmd.Process.Signal(syscall.SIGINT)
		cmd.Wait()
		os.RemoveAll(dir)
	})
	stops.Unlock()
	address := "127.0.0.1:" + port
	ctx, cancel := context.WithTimeout(context.Background(), kit.Patience)
	defer cancel()
	for {
		err := answers(ctx, address)
		if err == nil {
			return place{address: address, log: log}
		}
		select {
		case <-ctx.Done():
			b, _ := os.ReadFile(log)
			return place{missing: fmt.Errorf("%w\n%s", err, b)}
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// postgresServer is Debian's, or any whose programs are in PATH.
var postgresServer = sync.OnceValue(newPostgres)

func newPostgres() place {
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	initdb, err := exec.LookPath("initdb")
	if err != nil && len(all) > 0 {
		initdb = all[len(all)-1]
	} else if err != nil {
		return place{}
	}
	return runPostgres("", initdb)
}

// postgresOf runs the PostgreSQL of another Debian, below a root that tests/run fetches.
func postgresOf(root string) place {
	all, _ := filepath.Glob(filepath.Join(root, "usr/lib/postgresql/*/bin/initdb"))
	if root == "" || len(all) == 0 {
		return place{}
	}
	// No package was configured there.
	for link, to := range map[string]string{"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"} {
		_ = os.Symlink(to, filepath.Join(root, link))
	}
	if err := os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("postgres:x:1:1::/:/bin/sh\n"), 0o644); err != nil {
		return place{missing: err}
	}
	if err := os.MkdirAll(filepath.Join(root, "tmp"), 0o755); err != nil {
		return place{missing: err}
	}
	return runPostgres(root, all[0])
}

// runPostgres runs a server whose role "florete" may make roles and databases. It logs all
// statements.
func runPostgres(root, initdb string) place {
	temporary := os.TempDir()
	if root != "" {
		temporary = filepath.Join(root, "tmp")
	}
	dir, err := os.MkdirTemp(temporary, "florete-postgres-")
	if err != nil {
		return place{missing: err}
	}
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(rootPassword+"\n"), 0o600); err != nil {
		return place{missing: err}
	}
	data := filepath.Join(dir, "data")
	cmd, log, err := launch(root, dir, initdb, "-D", data, "-U", "root", "--pwfile", password, "-A", "scram-sha-256", "-E", "UTF8", "--no-sync")
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		b, _ := os.ReadFile(log)
		return place{missing: fmt.Errorf("initdb: %w\n%s", err, b)}
	}
	port := strconv.Itoa(kit.Port())
	return serve(dir, func(ctx context.Context, address string) error {
		conn, err := connect(ctx, postgresURL(address, "root", rootPassword, "postgres"))
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		for _, s := range []string{
			`CREATE ROLE florete LOGIN CREATEROLE CREATEDB PASSWORD '` + strings.ReplaceAll(adminPassword, "'", "''") + `'`,
			`REVOKE CREATE ON SCHEMA public FROM PUBLIC`,
		} {
			if _, err := conn.Exec(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}, port, root, filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-k", dir, "-p", port,
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "log_statement=all", "-c", "max_connections=200", "-c", "dynamic_shared_memory_type=mmap")
}

// everyPostgres runs a test with this machine's PostgreSQL, and the oldest and the newest that
// tests/run fetches.
func everyPostgres(t *testing.T, test func(t *testing.T, s serveraccount.Server, dir string)) {
	for name, at := range map[string]func(*testing.T) (serveraccount.Server, string){"here": postgresAt, "13": otherPostgres("13"), "17": otherPostgres("17")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := at(t)
			test(t, s, dir)
		})
	}
}

var otherPostgreses = map[string]func() place{
	"13": sync.OnceValue(func() place { return postgresOf(os.Getenv("FLORETE_POSTGRES_13_ROOT")) }),
	"17": sync.OnceValue(func() place { return postgresOf(os.Getenv("FLORETE_POSTGRES_17_ROOT")) }),
}

func otherPostgres(version string) func(t *testing.T) (serveraccount.Server, string) {
	return func(t *testing.T) (serveraccount.Server, string) {
		t.Helper()
		if os.Getuid() != 0 || os.Getenv("FLORETE_POSTGRES_"+version+"_ROOT") == "" {
			t.Skipf("NOT RUN: with PostgreSQL %s, which tests/run fetches and root alone can run beside another", version)
		}
		return otherPostgreses[version]().at(t, postgresKind, "postgresql-"+version, adminPassword)
	}
}

// redisServer is Debian's, or any in PATH, or the one that FLORETE_REDIS names; valkeyServer
// likewise.
var (
	redisServer  = sync.OnceValue(func() place { return runRedis("redis-server") })
	valkeyServer = sync.OnceValue(func() place { return runRedis("valkey-server") })
)

func runRedis(name string) place {
	found, err := program.Find(name)
	if err != nil {
		return place{}
	}
	dir, err := os.MkdirTemp("", "florete-redis-")
	if err != nil {
		return place{missing: err}
	}
	users := filepath.Join(dir, "users.acl")
	if err := os.WriteFile(users, []byte("user default off\nuser florete on >providers ~* &* +@all\n"), 0o600); err != nil {
		return place{missing: err}
	}
	port := strconv.Itoa(kit.Port())
	return serve(dir, func(ctx context.Context, address string) error {
		r, err := openRedis(ctx, serveraccount.Server{Address: address, User: "florete"}, "providers")
		if err == nil {
			r.Close()
		}
		return err
	}, port, "", append(found.Command, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--aclfile", users, "--save", "", "--daemonize", "no")...)
}

// at is a server as a policy has it, with the directory of its password. Without the server
// there is no test.
func (p place) at(t *testing.T, kind, pkg, password string) (serveraccount.Server, string) {
	t.Helper()
	if p.address == "" && p.missing == nil {
		t.Skipf("NOT RUN: no %s: apt-get install %s", kind, pkg)
	}
	if p.missing != nil {
		t.Fatal(p.missing)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main"), []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(p.address)
	s := serveraccount.Server{Kind: kind, Address: p.address, User: "florete", Host: host, Keep: 30 * 86400}
	fmt.Sscan(port, &s.Port)
	return s, dir
}

func postgresAt(t *testing.T) (serveraccount.Server, string) {
	t.Helper()
	return postgresServer().at(t, postgresKind, "postgresql", adminPassword)
}

func redisAt(t *testing.T) (serveraccount.Server, string) {
	t.Helper()
	return redisServer().at(t, redisKind, "redis-server", "providers")
}

func valkeyAt(t *testing.T) (serveraccount.Server, string) {
	t.Helper()
	return valkeyServer().at(t, redisKind, "valkey-server", "providers")
}

func postgresURL(address, user, password, database string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%s user='%s' password='%s' dbname='%s' sslmode=disable", address[strings.LastIndexByte(address, ':')+1:],
		user, strings.ReplaceAll(password, "'", `\'`), database)
}

func connect(ctx context.Context, to string) (*pgx.Conn, error) { return pgx.Connect(ctx, to) }
