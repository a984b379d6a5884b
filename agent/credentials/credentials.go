// Package credentials serves delivered secrets to systemd, which loads the credentials of services
// from a socket (systemd.exec(5), LoadCredential=). A secret that is loaded this way is never in a
// file that the service's account could read later:
//
//	[Service]
//	LoadCredential=oidc_client-secret:/run/florete/credentials.sock
//
// systemd connects as root from the abstract address "\0<random>/unit/<unit>/<credential>" and
// reads to the end. The unit's name determines the service, and the credential's name determines
// the files. For example, "oidc_client-secret" is the file client-secret of kind oidc, and "oidc"
// is a JSON object with all files of that kind. Function Find has the exact rules.
//
// The start of a unit waits until the secret is delivered, or until shortly before systemd's
// timeout. To refuse a credential, the package sends an answer that is too long for a credential.
// The unit then fails with status 243/CREDENTIALS. Systemd would accept an empty answer as an empty
// credential.
package credentials

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// Config configures the credential service that Serve runs.
type Config struct {
	Layout hostdir.Layout
	Log    *slog.Logger

	// StartTimeout returns the start timeout of a unit, or zero if the unit has none. If
	// StartTimeout is nil, Serve asks systemd.
	StartTimeout func(ctx context.Context, unit string) (time.Duration, error)

	Idle time.Duration // time without a request after which Serve returns; 0 for never
}

// server is a running credential service. All of its connections share its manifest and its watch
// of the files.
type server struct {
	Config
	mu       sync.Mutex
	document document.Document // the manifest that was read last
	changed  chan struct{}     // closed when files may have changed
}

// stored is the prefix of the names under which this process stores waiting connections with
// systemd.
const stored = "request-"

// Sockets finds the sockets of the credential service among the files that systemd has passed to
// this process (sd_listen_fds(3)), and closes the files. It returns the listening socket, and the
// unanswered connections that an earlier process has stored with systemd. It returns an error if
// there is no listening socket.
func Sockets(files []*os.File) (ln *net.UnixListener, waiting []*net.UnixConn, err error) {
	for _, f := range files {
		defer f.Close()
		if strings.HasPrefix(f.Name(), stored) {
			c, err := net.FileConn(f)
			if conn, ok := c.(*net.UnixConn); ok && err == nil {
				waiting = append(waiting, conn)
			}
			continue
		}
		l, err := net.FileListener(f)
		if err != nil {
			return nil, nil, fmt.Errorf("socket %s from systemd: %w", f.Name(), err)
		}
		ln, _ = l.(*net.UnixListener)
	}
	if ln == nil {
		return nil, nil, errors.New("systemd passes no socket")
	}
	return ln, waiting, nil
}

// Serve answers systemd's requests for credentials. It accepts connections from ln, and first
// answers the connections in waiting, which an earlier process has stored. It returns when ctx has
// ended and every connection has been answered.
func Serve(ctx context.Context, ln *net.UnixListener, waiting []*net.UnixConn, c Config) error {
	if c.StartTimeout == nil {
		c.StartTimeout = systemdTimeoutStart
	}
	s := &server{Config: c, changed: make(chan struct{})}
	var running sync.WaitGroup
	defer running.Wait()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { s.watch(watching) })
	var busy atomic.Int32
	begin := func(conn *net.UnixConn) {
		busy.Add(1)
		running.Go(func() {
			defer busy.Add(-1)
			defer conn.Close()
			s.serve(ctx, conn)
		})
	}
	for _, conn := range waiting {
		begin(conn)
	}
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	failures := conns.Failures{Log: c.Log}
	for {
		if c.Idle > 0 {
			ln.SetDeadline(time.Now().Add(c.Idle))
		}
		conn, err := ln.AcceptUnix()
		switch {
		case err == nil:
			begin(conn)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			if busy.Load() == 0 {
				return nil
			}
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("socket of credentials: %w", err)
		default: // connections wait at this socket, for example if there are no file descriptors
			failures.Pause("credentials", err)
		}
	}
}
