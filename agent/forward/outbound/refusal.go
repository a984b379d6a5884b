package outbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/trust"
)

// refusal is why a local process is not let through.
type refusal struct {
	reason string
	detail string
}

// explain is the refusal behind an error; nil when nothing was refused.
func explain(err error) *refusal {
	var refused *transport.RefusedError
	var impostor *transport.ImpostorError
	var revoked *trust.RevokedError
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return nil
	case errors.As(err, &refused) && refused.Code == wire.Reset:
		return nil
	case errors.As(err, &refused):
		return &refusal{refused.Code.String(), err.Error()}
	case errors.As(err, &impostor):
		return &refusal{"impostor", err.Error()}
	case errors.As(err, &revoked):
		return &refusal{"revoked", err.Error()}
	case errors.Is(err, transport.ErrNoIdentity):
		return &refusal{"no-identity", err.Error()}
	case errors.Is(err, transport.ErrFull):
		return &refusal{"no-stream", err.Error()}
	case errors.Is(err, transport.ErrExpired):
		return &refusal{"expired", err.Error()}
	}
	return &refusal{"no-connection", err.Error()}
}

// refuse counts and logs a refusal; nil is none.
func (s *Server) refuse(c connection, denied *refusal) {
	if denied == nil {
		return
	}
	r := telemetry.Refusal{
		Time: time.Now(), Direction: telemetry.Out, Reason: denied.reason,
		Target: c.target.ID().String(), Port: c.port, Peer: c.as.String(), Detail: fmt.Sprintf("uid %d: %s", c.by.UID, denied.detail),
		Known: slices.Contains(c.rules.reach[c.serviceKey].Callers, c.as),
	}
	s.Metrics.Refuse(r)
	_, known := c.rules.callers.Identity(c.by)
	s.refused.Warn(journal.Source{Reason: denied.reason, Who: fmt.Sprintf("uid %d", c.by.UID), Known: known}, "refused", "direction", r.Direction, "reason", r.Reason, "target", r.Target, "peer", r.Peer, "detail", r.Detail)
}
