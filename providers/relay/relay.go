// Package relay passes requests of operators to the processes of other kinds. Operators call the
// API of kind config. Its process connects to a Unix socket of the other process on the same host
// and announces the caller, as the forwarder announced it, in a PROXY protocol header.
//
// The other process decides by its own policy, and writes the audit row of an act into its own log,
// in the transaction that makes it. So no process can open what another one sealed.
package relay

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/pires/go-proxyproto"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
)

// Kind is the kind in audit rows.
const Kind = "control"

// Socket is the name of the socket in a process's runtime directory.
const Socket = "control.sock"

const (
	conns    = 32
	patience = 10 * time.Second // of one request
)

// Config configures the serving process. All fields are required.
type Config struct {
	Socket   string
	Account  string // of the process of kind config, which alone may connect
	Policies *server.Policies
	Audit    *server.Audit
	Logger   *slog.Logger
}

// Endpoint is a method and path, the access that it needs, and its handler.
type Endpoint struct {
	Method, Path string
	Access       document.Access
	Answer       func(*Call) (any, error)
}

// Call is one request of an operator, with the audit row of its act.
type Call struct {
	R      *http.Request
	W      http.ResponseWriter
	Row    server.Row
	Policy document.Policy
}

// Body decodes a request of at most the given number of bytes. The error contains nothing of a body
// that cannot be read, since it may be a secret.
func (c *Call) Body(most int64, v any) error {
	b, err := io.ReadAll(http.MaxBytesReader(c.W, c.R.Body, most))
	if err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "body: %v", err)
	}
	if !utf8.Valid(b) || strictjson.Decode(b, v) != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "body: not of the form that /v1/openapi.json has")
	}
	return nil
}

// Run serves operators until ctx ends. It starts to listen once the policy names any.
func Run(ctx context.Context, c Config, endpoints ...Endpoint) {
	refusals := announced.Refusals{Kind: Kind, Audit: c.Audit, Logger: c.Logger}
	mux := http.NewServeMux()
	for _, e := range endpoints {
		mux.HandleFunc(e.Method+" "+e.Path, func(w http.ResponseWriter, r *http.Request) {
			deadline := time.Now().Add(patience)
			_ = http.NewResponseController(w).SetReadDeadline(deadline)
			_ = http.NewResponseController(w).SetWriteDeadline(deadline)
			call := &Call{R: r, W: w, Row: refusals.Row(r), Policy: c.Policies.Newest()}
			err := announced.Operator(r, call.Policy, e.Access)
			var answer any
			if err == nil {
				answer, err = e.Answer(call)
			}
			if err != nil {
				refusal := refusals.Refuse(w, r, call.Row, err)
				announced.Reply(w, refusal.Status(), refusal)
				return
			}
			announced.Reply(w, http.StatusOK, answer)
		})
	}
	announced.Run(ctx, announced.Config{
		Socket: c.Socket, Forwarder: c.Account, Service: spiffe.ControlService, Kind: Kind,
		Conns: conns, ConnsOfCaller: conns / 4, Audit: c.Audit, Logger: c.Logger,
		Wanted:  func() bool { return len(c.Policies.Current().Operators) > 0 },
		Handler: mux,
	})
}

// To forwards a request to the process at a socket. It returns an error if that was not possible.
func To(socket string, w http.ResponseWriter, r *http.Request) (failed error) {
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: r.Host})
			p.Out.Host = r.Host
			p.Out.URL.Path = r.URL.Path
		},
		// The header is of a connection, so each request has one of its own.
		Transport: &http.Transport{
			DisableKeepAlives:     true,
			ResponseHeaderTimeout: patience,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dial(ctx, socket, announced.From(r.Context()), r.RemoteAddr)
			},
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(w, r)
	return failed
}

// dial connects, and announces a caller.
func dial(ctx context.Context, socket string, caller announced.Caller, from string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(from)
	if err != nil {
		return nil, err
	}
	h := proxyproto.HeaderProxyFromAddrs(2, net.TCPAddrFromAddrPort(at), net.TCPAddrFromAddrPort(at))
	err = h.SetTLVs([]proxyproto.TLV{
		{Type: proxyproto.PP2_TYPE_AUTHORITY, Value: []byte(caller.Name)},
		{Type: spiffe.ProxyCaller, Value: []byte(caller.ID.String())},
	})
	if err != nil {
		return nil, err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if _, err = h.WriteTo(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
