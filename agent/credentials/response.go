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
	// poll is the interval at which waiting connections are checked. If inotify is not available,
	// the files are read at this interval too.
	poll = time.Second
	// sending is the time that systemd has to read a response.
	sending = 10 * time.Second
	// maxCredential is the largest credential that systemd accepts, in bytes.
	maxCredential = 1 << 20
	// systemdTimeout is systemd's default start timeout (DefaultTimeoutStartSec=,
	// systemd-system.conf(5)).
	systemdTimeout = 90 * time.Second
)

// refusal is the response that refuses a credential. It is too long for a credential, so that
// systemd fails the unit.
var refusal = make([]byte, maxCredential+1)

// serve answers the request on one connection. While the connection waits, systemd stores a copy.
// Without the copy, the connection would be closed when this process ends, and the unit would start
// with an empty credential.
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

// errGone reports that systemd has closed the connection because it no longer starts the unit.
var errGone = errors.New("systemd has closed the connection")

// answer waits until all files of the credential are delivered, and then returns the credential.
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

// end returns the time until which a request may wait. This is shortly before the start of the unit
// times out, or the zero Time if the unit has no timeout. A process that takes over the connection
// computes the same time.
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

// read returns the requested credential. The error is fs.ErrNotExist if a file of the credential
// has not been delivered yet.
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
