// Package serveraccount makes and ends accounts at servers of the cluster, such as databases and
// forges. It is used by the kinds of need whose answer is such an account:
//
//	a policy names it    a request makes it and answers with its secret; a sweep ends former secrets
//	no policy names it   a sweep ends it, with a row in the audit log
//	nor its server       it stays as it is at the server, and the log says so
//
// Each change has three steps: it is stored, with secrets sealed, then made at the server, and then
// sent to the host. If the process ends between two steps, the next request or sweep continues from
// there. Each kind implements how accounts are made, renewed and ended.
package serveraccount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/sockdiag"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

const (
	// Repeated is the time for which a repeated request receives the recorded answer instead of a
	// new decision.
	Repeated = 30 * time.Second

	// Deadline is the longest time that the work of one request at a server may take. It is shorter
	// than the time that a host waits for its answer.
	Deadline = 15 * time.Second
)

// Config configures Accounts. All fields are required, but only Run uses Policy.
type Config[R Request[R]] struct {
	Store store.Store
	Key   *sealedstore.Key
	Dir   string // directory of the credentials for servers, a file for each, with the server's name

	// Policy returns the policy in force, or nil while the policy does not include this kind.
	Policy func() *Policy[R]
	Logger *slog.Logger
}

// Kind contains the functions and words in which kinds of accounts differ, such as database logins
// and accounts at Git forges. R is the type of requests, and B the type of connections to servers.
type Kind[R Request[R], B io.Closer] struct {
	Name     string
	Account  string // word for an account in messages and audit rows
	Server   string // word for a server in messages
	Secrets  string // part of the keys of accounts' secrets, after the kind's name
	Drops    bool   // whether accounts that no policy names are dropped after their server's Keep
	AtServer bool   // whether turns are taken for a server instead of an account

	// Open contains a function for each kind of server. The function connects to a server as the
	// user that the policy names. The secret may be empty.
	Open map[string]func(ctx context.Context, s Server, secret string) (B, error)

	// Answer makes or updates the requested account at the server, and returns the answer for the
	// host.
	Answer func(ctx context.Context, b B, now time.Time, s Server, want R) (server.Decision, error)

	// Renew does the work that is due for an account that a policy names. End does the work that is
	// due for an account that no policy names.
	Renew func(ctx context.Context, now time.Time, s Server, want R) error
	End   func(ctx context.Context, now time.Time, s Server, of Name) error
}

// Accounts implements a kind of need whose answers are accounts at servers.
type Accounts[R Request[R], B io.Closer] struct {
	Config[R]
	kind  Kind[R, B]
	turns sync.Map // of those who work at a server
}

// New returns the Accounts of the kind k.
func New[R Request[R], B io.Closer](c Config[R], k Kind[R, B]) *Accounts[R, B] {
	return &Accounts[R, B]{Config: c, kind: k}
}

// Name returns the name of this kind of need.
func (a *Accounts[R, B]) Name() string { return a.kind.Name }

// Answer creates or updates the requested account at its server, and returns the account's
// credentials. If the server does not work, the error contains the reason and is transient
// (hostapi.CodeUnavailable), so the host requests again.
func (a *Accounts[R, B]) Answer(ctx context.Context, p *Policy[R], c server.Call) (d server.Decision, err error) {
	want := p.wants[p.requests.Of(c).Of()]
	s := p.Servers[want.Of().Server]
	err = a.At(ctx, s, want.Of(), func(ctx context.Context, b B) (err error) {
		d, err = a.kind.Answer(ctx, b, c.Now, s, want)
		return err
	})
	var of *serverError
	if errors.As(err, &of) { // a host retries, and people see what is wrong
		err = hostapi.Errorf(hostapi.CodeUnavailable, "%v", of)
	}
	if err != nil {
		return server.Decision{}, err
	}
	d.Answer.Values["generation"] = fmt.Sprint(c.Request.Generation)
	d.Detail[a.kind.Account], d.Detail[a.kind.Server] = want.Of().Account, want.Of().Server
	return d, nil
}

// At connects to a server and calls work with the connection. No other request or process works on
// the account meanwhile. At closes the connection when work returns. If others work on the account
// for longer than Deadline, the error is hostapi.CodeBusy.
func (a *Accounts[R, B]) At(ctx context.Context, s Server, of Name, work func(ctx context.Context, b B) error) error {
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	what := a.kind.Account + " " + of.String()
	if a.kind.AtServer {
		what = a.kind.Server + " " + of.Server
	}
	turn, _ := a.turns.LoadOrStore(what, make(chan struct{}, 1))
	mine := turn.(chan struct{})
	select {
	case mine <- struct{}{}:
		defer func() { <-mine }()
	case <-ctx.Done():
		return hostapi.Errorf(hostapi.CodeBusy, "%s: other requests work on it", what)
	}
	at := of.String()
	if a.kind.AtServer {
		at = of.Server
	}
	release, err := a.turn(ctx, at)
	if errors.Is(err, context.DeadlineExceeded) {
		return hostapi.Errorf(hostapi.CodeBusy, "%s: another process works on it", what)
	}
	if err != nil {
		return err
	}
	defer release()
	b, err := a.open(ctx, s, of)
	if err != nil {
		return err
	}
	defer b.Close()
	return work(ctx, b)
}

// Look connects to a server and calls read with the connection, and then closes it. Other processes
// may work on the account at the same time, so read must change nothing.
func (a *Accounts[R, B]) Look(ctx context.Context, s Server, of Name, read func(b B) error) error {
	b, err := a.open(ctx, s, of)
	if err != nil {
		return err
	}
	defer b.Close()
	return read(b)
}

// AtSame is like At, but only calls work if the stored record of the account has not changed since
// Read returned r. Otherwise it returns nil, and the next call of Sweep does the work.
func (a *Accounts[R, B]) AtSame(ctx context.Context, s Server, of Name, r Record, work func(ctx context.Context, b B) error) error {
	return a.At(ctx, s, of, func(ctx context.Context, b B) error {
		e, err := a.Store.Get(ctx, a.state(of.String()))
		if errors.Is(err, store.ErrNotFound) || err == nil && e.Modified != r.kept().Modified {
			return nil
		}
		if err != nil {
			return err
		}
		return work(ctx, b)
	})
}

func (a *Accounts[R, B]) open(ctx context.Context, s Server, of Name) (opened B, err error) {
	file := filepath.Join(a.Dir, of.Server)
	b, err := secretfile.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return opened, err
	}
	secret := strings.TrimSuffix(string(b), "\n")
	opened, err = a.kind.Open[s.Kind](ctx, s, secret)
	if err != nil {
		by := "by " + file
		if secret == "" {
			by = "by nothing, for there is none in " + file
		}
		return opened, Errorf("%s %s: user %q at %s, %s: %w", a.kind.Server, of.Server, s.User, s.Address, by, err)
	}
	return opened, nil
}

// Reseal encrypts the stored secrets of accounts again, with the newest secret of the sealing key.
// Values that this secret has encrypted already are left unchanged.
func (a *Accounts[R, B]) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, a.Store, a.secrets(""), a.Key.Reseal)
}

// serverError is an error that the server caused. Its text is for people and contains no secrets.
type serverError struct{ error }

func (e *serverError) Unwrap() error { return e.error }

// Errorf formats an error that a server caused, as fmt.Errorf does. The text is sent to hosts, so
// it must not contain secrets.
func Errorf(format string, args ...any) error { return &serverError{fmt.Errorf(format, args...)} }

// Dial connects to a server on this machine, at a loopback address or a Unix socket (unix:/path).
// While the server is down, any account of the machine could listen at its loopback address and
// receive secrets. Dial therefore returns an error unless the listener belongs to root or to a
// system account.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	if path, unix := strings.CutPrefix(address, "unix:"); unix {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	conn, err := sockdiag.Dial(ctx, address, func(at netip.AddrPort) error {
		if !at.Addr().Unmap().IsLoopback() {
			return fmt.Errorf("%s: secrets would cross the network in clear: want a loopback address, a name of the cluster, or unix:/path", at)
		}
		return nil
	}, sockdiag.System)
	var dialing *net.OpError
	if err != nil && !errors.As(err, &dialing) {
		err = fmt.Errorf("%s: %w", address, err)
	}
	return conn, err
}
