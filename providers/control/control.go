// Package control is the API by which operators act at a config provider: JSON over HTTP on
// a Unix socket, which the forwarder alone can connect to. It publishes the socket as the
// service florete-control of the host, and announces each caller in a PROXY protocol header.
// Before there are operators, root of the host calls the same API: flor-provider control.
// What a caller may do is in the policy, read anew for each request; nothing that a request
// has in it names its caller. openapi.json describes the API.
//
// An act is in the audit log with who, what, from where, before and after, in the transaction
// that makes it; so is each refusal. Reading leaves no rows.
package control

import (
	"context"
	"log/slog"
	"net"
	"net/http"

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
	Logs     Logs
	Logger   *slog.Logger
}

// Logs returns the audit logs that can be read here, by kind of need. The log of kind config,
// which Config.Audit writes to, is one of them.
type Logs func() (map[string]tlog.Local, error)

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

func (c Config) handler() http.Handler {
	a := &api{c, announced.Refusals{Kind: Kind, Audit: c.Audit, Logger: c.Logger}, make(chan struct{}, maxRequests), conns.NewPerKey[string](maxRequestsOfCaller)}
	return a.routes()
}

// ServeAccount serves one connection of an account of this host, which may do all that operators
// may, whether the policy has operators or not. It may run beside Run in another process.
func ServeAccount(conn net.Conn, account string, c Config) error {
	return announced.ServeAccount(conn, account, c.handler())
}

// Run serves operators until ctx ends, once the policy has any.
func Run(ctx context.Context, c Config) {
	announced.Run(ctx, announced.Config{
		Socket: c.Socket, Forwarder: c.Forwarder, Service: spiffe.ControlService, Kind: Kind,
		Conns: maxConns, ConnsOfCaller: maxConnsOfCaller, Audit: c.Audit, Logger: c.Logger,
		Wanted:  func() bool { return len(c.Policies.Current().Operators) > 0 },
		Handler: c.handler(),
	})
}
