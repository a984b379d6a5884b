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
	"github.com/florete/florete/agent/ping"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/trust"
)

// refusal is the reason why the connection of a local process was refused.
type refusal struct {
	reason string
	detail string
}

// These are the reasons for which this forwarder refuses. A forwarder on another host refuses with
// a wire.Code.
const (
	becauseTooMany       = "too-many"
	becauseBadDatagram   = "bad-datagram"
	becauseBadName       = "bad-name"
	becauseNotCaller     = "not-caller"
	becauseUnknownCaller = "unknown-caller"
	becauseNotReachable  = "not-reachable"
	becauseImpostor      = "impostor"
	becauseRevoked       = "revoked"
	becauseNoIdentity    = "no-identity"
	becauseNoStream      = "no-stream"
	becauseExpired       = "expired"
	becauseNoConnection  = "no-connection"
	becauseCallerGone    = "caller-gone"
	becauseNotSOCKS5     = "not-socks5"
	becauseNotAdmitted   = "not-admitted"        // at an entry
	becauseUnknownName   = "unknown-server-name" // at an entry
	becauseBadProof      = "bad-certificate"     // at an entry
)

// remedy tells a person how to resolve a refusal. The field step names the step of flor ping that
// finds the refusal. If it is empty, the current step has found it.
type remedy struct{ step, what string }

var cures = map[string]remedy{
	becauseUnknownCaller:       {"", "run it as an account that acts under an identity here: hosts.<host>.callers in the topology, and flor status"},
	becauseNotCaller:           {"", "run it as an account that is among the callers of that identity here: hosts.<host>.callers in the topology"},
	becauseNotReachable:        {"", "have a role of the caller reach the service in the topology"},
	becauseTooMany:             {"", "end some of the account's connections: flor status"},
	becauseNoIdentity:          {ping.Caller, "flor doctor: the certificate was not delivered"},
	becauseRevoked:             {ping.Caller, "an operator: florctl revocations has what is revoked"},
	becauseExpired:             {ping.Caller, "flor doctor: the certificate was not renewed, or a clock is wrong"},
	becauseNoConnection:        {ping.Dial, "flor doctor: it names what is between this host and the forwarder there"},
	becauseNoStream:            {ping.Dial, "end some of the caller's connections: flor status"},
	wire.NoRoute.String():      {ping.Dial, "on the host there: flor status shows its uplinks to relays, and why one is not connected"},
	wire.Stopping.String():     {ping.Dial, "ping again: the forwarder there is being started again"},
	becauseImpostor:            {ping.Identity, "on the host there: flor doctor; another program may have its address"},
	wire.Untrusted.String():    {ping.Identity, "flor doctor, here and there: one host does not trust what the other's certificate leads to"},
	wire.Denied.String():       {ping.Identity, "an operator: florctl explain says whether a role leads there, and until when; if one does, deploy the host that publishes it: its allow list does not have the caller"},
	wire.NotPublished.String(): {ping.Identity, "deploy the host that publishes it: its documents do not have the service"},
	wire.Refused.String():      {ping.Upstream, "start the service there: nothing listens at its upstream"},
	wire.Unreachable.String():  {ping.Upstream, "on the host there: flor doctor names the upstream that does not answer"},
	wire.Foreign.String():      {ping.Upstream, "on the host there: flor doctor names whose socket it is; services.<name>.user is whose it must be"},
	wire.OverLimit.String():    {ping.Upstream, "ping later: the caller or the service has reached a limit of the topology"},
	wire.Busy.String():         {ping.Upstream, "ping later: a limit is reached there; flor top on that host shows which callers have the most connections"},
}

// explain returns the refusal that caused an error. It returns nil if nothing was refused.
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
		return &refusal{becauseImpostor, err.Error()}
	case errors.As(err, &revoked):
		return &refusal{becauseRevoked, err.Error()}
	case errors.Is(err, transport.ErrNoIdentity):
		return &refusal{becauseNoIdentity, err.Error()}
	case errors.Is(err, transport.ErrFull):
		return &refusal{becauseNoStream, err.Error()}
	case errors.Is(err, transport.ErrExpired):
		return &refusal{becauseExpired, err.Error()}
	}
	return &refusal{becauseNoConnection, err.Error()}
}

// refuse counts and logs a refusal. It does nothing if denied is nil.
func (s *Server) refuse(c connection, denied *refusal) {
	if denied == nil {
		return
	}
	k := journal.Source{Reason: denied.reason, Who: fmt.Sprintf("uid %d", c.by.UID)}
	who := k.Who
	if c.stranger.from.IsValid() {
		k.Who, who = journal.Address(c.origin.From), "from "+c.origin.From.String()
	} else {
		_, k.Known = c.rules.callers.Identity(c.by)
	}
	r := telemetry.Refusal{
		Time: time.Now(), Direction: telemetry.Out, Reason: denied.reason,
		Target: c.target.ID().String(), Port: c.port, Peer: c.as.String(), Detail: who + ": " + denied.detail,
		Known: slices.Contains(c.rules.reach[c.serviceKey].Callers, c.as),
	}
	s.Metrics.Refuse(r)
	s.refused.Warn(k, "refused", "direction", r.Direction, "reason", r.Reason, "target", r.Target, "peer", r.Peer, "detail", r.Detail)
}
