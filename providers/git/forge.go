package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/secretfile"
)

// forge is a connection to a server that has git repositories, as somebody who makes accounts
// there. All its methods may be repeated, and go on from where one was cut off. Errors are
// *forgeError where the forge is to blame.
type forge interface {
	// allow makes an account that is not there, and gives it these rights and none of the
	// former ones besides.
	allow(ctx context.Context, account string, rights, former []right) error

	// tokens are the names of those of an account, by ID; none of one that is not there.
	tokens(ctx context.Context, account string) (map[string]string, error)

	// create makes a token, which does not work longer than that where the forge can end it.
	create(ctx context.Context, account, name, access string, lasts time.Duration) (string, error)

	// end has a token work no more.
	end(ctx context.Context, account, id string) error

	close()
}

const (
	softServeKind = "soft-serve"
	forgejoKind   = "forgejo"
)

// opener connects to a forge, with what the provider acts by there.
type opener func(ctx context.Context, t *Tokens, f Forge, credential []byte) (forge, error)

var forges = map[string]opener{softServeKind: openSoftServe, forgejoKind: openForgejo}

// open acts at the forge of an account.
func (t *Tokens) open(ctx context.Context, f Forge, of spec) (forge, error) {
	file := filepath.Join(t.Credentials, of.Forge)
	b, err := secretfile.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &forgeError{fmt.Errorf("forge %s: %s is missing: put there what user %q acts by", of.Forge, file, f.User)}
	}
	if err != nil {
		return nil, err
	}
	opened, err := forges[f.Kind](ctx, t, f, b)
	if err != nil {
		return nil, &forgeError{fmt.Errorf("forge %s: user %q at %s, by %s: %w", of.Forge, f.User, f.Address, file, err)}
	}
	return opened, nil
}

// forgeError is of a forge, in words for people; no secrets.
type forgeError struct{ error }

func (e *forgeError) Unwrap() error { return e.error }

// refusal is what a host gets to know of an error: it retries, and people see what is wrong.
func refusal(err error) error {
	var of *forgeError
	if errors.As(err, &of) {
		return api.Errorf(api.Transient, api.CodeUnavailable, "%v", of)
	}
	return err
}

// dial connects to an address on this machine, or to one that a listener here leads to: what
// is sent there crosses no network in clear, and nobody else answers.
func dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err == nil && !net.ParseIP(host).IsLoopback() {
			err = fmt.Errorf("%s: tokens would cross the network in clear: want a loopback address, or a name of the cluster", address)
		}
		return err
	}}
	return d.DialContext(ctx, "tcp", address)
}
