package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/secretfile"
)

// backend is a connection to a database server, as somebody who makes databases and logins
// there. All its methods may be repeated, and go on from where one was cut off. Errors are
// *serverError where the server is to blame.
type backend interface {
	// user is how a login in a slot of a database is called.
	user(name, slot string) string

	// slots are those of a database that can log in.
	slots(ctx context.Context, name string) ([]string, error)

	// set makes what is missing of a database, and has exactly these log in. With none it
	// makes nothing, and ends what is open.
	set(ctx context.Context, name string, logins []credential) error

	// drop removes the database with all that is in it.
	drop(ctx context.Context, name string) error

	close()
}

const (
	postgresKind = "postgres"
	redisKind    = "redis"
)

// backends open a connection, on which one process at a time works on the database of a name.
var backends = map[string]func(ctx context.Context, s Server, password, name string) (backend, error){
	postgresKind: openPostgres,
	redisKind:    openRedis,
}

// open logs in at the server of a database.
func (d *Databases) open(ctx context.Context, s Server, of spec) (backend, error) {
	file := filepath.Join(d.Passwords, of.Server)
	b, err := secretfile.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	password := strings.TrimSuffix(string(b), "\n")
	opened, err := backends[s.Kind](ctx, s, password, of.Name)
	if err != nil {
		with := "with the password in " + file
		if password == "" {
			with = "without a password, for there is none in " + file
		}
		return nil, &serverError{fmt.Errorf("server %s: user %q at %s, %s: %w", of.Server, s.User, s.Address, with, err)}
	}
	return opened, nil
}

// serverError is of a database server, in words for people; no secrets.
type serverError struct{ error }

func (e *serverError) Unwrap() error { return e.error }

// refusal is what a host gets to know of an error: it retries, and people see what is wrong.
func refusal(err error) error {
	var of *serverError
	if errors.As(err, &of) {
		return api.Errorf(api.Transient, api.CodeUnavailable, "%v", of)
	}
	return err
}

// dial connects to an address on this machine, or to one that a listener here leads to: what
// is sent there, passwords too, crosses no network in clear.
func dial(ctx context.Context, address string) (net.Conn, error) {
	if path, unix := strings.CutPrefix(address, "unix:"); unix {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err == nil && !net.ParseIP(host).IsLoopback() {
			err = fmt.Errorf("%s: passwords would cross the network in clear: want a loopback address, a name of the cluster, or unix:/path", address)
		}
		return err
	}}
	return d.DialContext(ctx, "tcp", address)
}

// turns let one at a time work on a database.
type turns struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when its turn ends
}

// take waits for the turn of a database.
func (t *turns) take(ctx context.Context, key string) (done func(), err error) {
	for {
		t.mu.Lock()
		busy, held := t.held[key]
		if !held {
			over := make(chan struct{})
			if t.held == nil {
				t.held = map[string]chan struct{}{}
			}
			t.held[key] = over
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.held, key)
				close(over)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, api.Errorf(api.Transient, api.CodeBusy, "database %s: another request works on it", key)
		}
	}
}
