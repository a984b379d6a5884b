// Package control is the API by which operators act at a config provider: JSON over HTTP on
// a Unix socket, which the forwarder alone can connect to. It publishes the socket as the
// service florete-control of the host, and announces each caller in a PROXY protocol header.
// What a caller may do is in the policy, read anew for each request; nothing that a request
// has in it names its caller. openapi.json describes the API.
//
// An act is in the audit log with who, what, from where, before and after, in the transaction
// that makes it; so is each refusal. Reading leaves no rows.
package control

import (
	"context"
	"log/slog"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/tlog"
)

// Config of the API. All fields are needed.
type Config struct {
	Socket    string // that the forwarder connects to
	Forwarder string // account that alone may
	Spool     string // directory for what is being received

	// Relayed is the socket at which the process of another kind answers operators.
	Relayed func(kind string) string

	Policies *server.Policies
	Archive  archive.Archive
	Keep     int // versions that stay
	Audit    *server.Audit
	Log      *tlog.Log // of Audit's rows
	Logger   *slog.Logger
}

// What callers can hold: so many connections in all and each, and requests likewise.
const (
	maxConns, maxConnsOfCaller       = 256, 32
	maxRequests, maxRequestsOfCaller = 16, 4
)

// Kind is that of the API's audit rows.
const Kind = "control"

type api struct {
	Config
	refusals announced.Refusals
	slots    chan struct{}
	callers  *conns.PerKey[string]
}

// Run serves operators until ctx ends, once the policy has any.
func Run(ctx context.Context, c Config) {
	a := &api{c, announced.Refusals{Kind: Kind, Audit: c.Audit, Logger: c.Logger}, make(chan struct{}, maxRequests), conns.NewPerKey[string](maxRequestsOfCaller)}
	announced.Run(ctx, announced.Config{
		Socket: c.Socket, Forwarder: c.Forwarder, Service: spiffe.ControlService, Kind: Kind,
		Conns: maxConns, ConnsOfCaller: maxConnsOfCaller, Audit: c.Audit, Logger: c.Logger,
		Wanted:  func() bool { return len(c.Policies.Current().Operators) > 0 },
		Handler: a.routes(),
	})
}
