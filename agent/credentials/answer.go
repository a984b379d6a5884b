package credentials

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"github.com/florete/florete/agent/forward/fdstore"
)

const (
	poll = 200 * time.Millisecond
	// sending is how long systemd may take to read an answer.
	sending = 10 * time.Second
	// maxCredential is the most that systemd takes for a credential.
	maxCredential = 1 << 20
	// systemdTimeout is DefaultTimeoutStartSec= where nobody set it (systemd-system.conf(5)).
	systemdTimeout = 90 * time.Second
)

// refusal is what no credential can be.
var refusal = make([]byte, maxCredential+1)

// serve answers one connection. While it waits systemd holds it too: would it end
// with this process, the unit would start with nothing for a credential.
func (c Config) serve(ctx context.Context, conn *net.UnixConn) {
	a, err := asking(conn)
	if err != nil {
		c.Log.Warn("refused", "error", err)
		return
	}
	log := c.Log.With("unit", a.unit, "credential", a.name)
	if err := fdstore.Hold(a.key, conn); err != nil {
		log.Warn("not held by systemd while it waits", "error", err)
	}
	defer fdstore.Drop(a.key)
	answer, err := c.answer(ctx, conn, a)
	switch {
	case errors.Is(err, errGone):
		log.Info("nobody waits any more")
		return
	case err != nil:
		log.Warn("refused", "error", err)
		answer = refusal
	default:
		log.Info("given")
	}
	conn.SetWriteDeadline(time.Now().Add(sending))
	if _, err := conn.Write(answer); err != nil && len(answer) <= maxCredential {
		log.Warn("not taken", "error", err)
	}
}

// errGone ends the wait for a unit that does not start any more.
var errGone = errors.New("systemd has closed the connection")

// answer is the credential, as soon as all of it is there.
func (c Config) answer(ctx context.Context, conn *net.UnixConn, a ask) ([]byte, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var end time.Time
	var ending <-chan time.Time
	for first := true; ; first = false {
		b, err := c.read(a)
		if !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
		if first {
			if end = c.end(ctx, a.unit); !end.IsZero() {
				ending = time.After(time.Until(end))
			}
			c.Log.Info("waits", "unit", a.unit, "credential", a.name, "for", err)
		}
		switch {
		case !end.IsZero() && !time.Now().Before(end):
			return nil, fmt.Errorf("not fulfilled before the unit's start times out: %w", err)
		case gone(conn):
			return nil, errGone
		}
		select {
		case <-tick.C:
		case <-ending:
		case <-ctx.Done():
			return nil, fmt.Errorf("stopped while it waits: %w", err)
		}
	}
}

// end is shortly before the start of a unit times out, zero for never.
func (c Config) end(ctx context.Context, unit string) time.Time {
	limit, err := c.Limit(ctx, unit)
	if err != nil {
		limit = systemdTimeout
		c.Log.Warn("takes systemd's default for how long it may take to start", "unit", unit, "limit", limit, "error", err)
	}
	if limit == 0 {
		return time.Time{}
	}
	return time.Now().Add(limit - limit/10)
}

// read is the credential. The error is fs.ErrNotExist while something is yet to be
// delivered.
func (c Config) read(a ask) ([]byte, error) {
	doc, err := c.Layout.Manifest()
	if err != nil {
		return nil, err
	}
	m := doc.Manifest()
	found, err := Find(m, a.unit, a.name)
	if err != nil {
		return nil, err
	}
	b, err := found.read(c.Layout)
	if err == nil && len(b) > maxCredential {
		return nil, fmt.Errorf("%d bytes, systemd takes %d", len(b), maxCredential)
	}
	return b, err
}
