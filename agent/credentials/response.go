package credentials

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"github.com/florete/florete/agent/forward/handover"
)

const (
	// poll is how often a connection that waits is checked, and the disk without inotify.
	poll = time.Second
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
func (s *server) serve(ctx context.Context, conn *net.UnixConn) {
	r, err := parsePeer(conn)
	if err != nil {
		s.Log.Warn("refused", "error", err)
		return
	}
	log := s.Log.With("unit", r.unit, "credential", r.name)
	if err := handover.Hold(r.key, conn); err != nil {
		log.Warn("not held by systemd while it waits", "error", err)
	}
	defer handover.Drop(r.key)
	answer, err := s.answer(ctx, conn, r)
	switch {
	case errors.Is(err, errGone):
		log.Info("the unit does not start any more")
		return
	case err != nil:
		log.Warn("refused", "error", err)
		answer = refusal
	default:
		log.Info("delivered")
	}
	conn.SetWriteDeadline(time.Now().Add(sending))
	if _, err := conn.Write(answer); err != nil && len(answer) <= maxCredential {
		log.Warn("not read", "error", err)
	}
}

// errGone ends the wait for a unit that does not start any more.
var errGone = errors.New("systemd has closed the connection")

// answer is the credential, as soon as all of it is there.
func (s *server) answer(ctx context.Context, conn *net.UnixConn, r request) ([]byte, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var end time.Time
	var ending <-chan time.Time
	for first := true; ; first = false {
		changed := s.changes()
		b, err := s.read(r)
		if !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
		if first {
			if end = s.end(ctx, r); !end.IsZero() {
				ending = time.After(time.Until(end))
			}
			s.Log.Info("waits", "unit", r.unit, "credential", r.name, "for", err)
		}
		switch {
		case !end.IsZero() && !time.Now().Before(end):
			return nil, fmt.Errorf("not fulfilled before the unit's start times out: %w", err)
		case gone(conn):
			return nil, errGone
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ending:
		case <-ctx.Done():
			return nil, fmt.Errorf("stopped while it waits: %w", err)
		}
	}
}

// end is shortly before the start of a unit times out, zero for never. A process that goes on
// with what another one held comes to the same.
func (s *server) end(ctx context.Context, r request) time.Time {
	limit, err := s.StartTimeout(ctx, r.unit)
	if err != nil {
		limit = systemdTimeout
		s.Log.Warn("assumes systemd's default start timeout", "unit", r.unit, "limit", limit, "error", err)
	}
	if limit == 0 {
		return time.Time{}
	}
	return r.begun.Add(limit - limit/10)
}

// read is the credential. The error is fs.ErrNotExist while something is yet to be
// delivered.
func (s *server) read(r request) ([]byte, error) {
	m, err := s.manifest()
	if err != nil {
		return nil, err
	}
	found, err := Find(m, r.unit, r.name)
	if err != nil {
		return nil, err
	}
	b, err := found.read(s.Layout)
	if err == nil && len(b) > maxCredential {
		return nil, fmt.Errorf("%d bytes, systemd takes %d", len(b), maxCredential)
	}
	return b, err
}
