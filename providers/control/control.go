// Package control implements the operators' API of a config provider: JSON over HTTP on a Unix
// socket that only the forwarder can connect to. The forwarder publishes the socket as the service
// florete-control of the host, and announces each caller in a PROXY protocol header. Before there
// are operators, root of the host calls the same API with flor-provider control. The policy decides
// what a caller may do, and is read again for each request. The content of a request never
// identifies its caller. openapi.json describes the API.
//
// Each act is recorded in the audit log, in the same transaction as the act. The row contains the
// caller, the act, the address, and the values before and after. Each refusal is recorded as well.
// Reading leaves no rows.
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

// Config configures the operators' API. All fields are required.
type Config struct {
	Socket    string // Unix socket to which the forwarder connects
	Forwarder string // account of the forwarder; no other may connect
	Spool     string // directory for published documents while they are received

	// Relayed returns the path of the Unix socket at which the process of another kind answers
	// operators.
	Relayed func(kind string) string

	Policies *server.Policies
	Archive  archive.Archive
	Keep     int // number of versions to keep
	Audit    *server.Audit
	Logs     Logs
	Logger   *slog.Logger
}

// Logs returns the audit logs that operators can read through this API, by kind of need. They
// include the log of the kind "config", to which Config.Audit writes.
type Logs func() (map[string]tlog.Local, error)

// These constants limit connections and requests, in total and for each caller.
const (
	maxConns, maxConnsOfCaller       = 256, 32
	maxRequests, maxRequestsOfCaller = 16, 4
)

// Kind is the name that the audit log shows as the kind in rows of the operators' API.
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

// ServeAccount serves the API to a Unix account of this host over one connection, and returns when
// the connection is closed. The account may make every request, even if the policy names no
// operators. It is safe to call ServeAccount in one process while another process calls Run.
func ServeAccount(conn net.Conn, account string, c Config) error {
	return announced.ServeAccount(conn, account, c.handler())
}

// Run serves the API to operators until ctx ends. It begins to listen once the policy names an
// operator.
func Run(ctx context.Context, c Config) {
	announced.Run(ctx, announced.Config{
		Socket: c.Socket, Forwarder: c.Forwarder, Service: spiffe.ControlService, Kind: Kind,
		Conns: maxConns, ConnsOfCaller: maxConnsOfCaller, Audit: c.Audit, Logger: c.Logger,
		Wanted:  func() bool { return len(c.Policies.Current().Operators) > 0 },
		Handler: c.handler(),
	})
}
