// Package relay leads operators to the processes of other kinds than config. They call the API
// of kind config; its process connects to a Unix socket of the other one on the same host, and
// announces the caller as the forwarder announced it, in a PROXY protocol header.
//
// The other process decides by its own policy, and writes the audit row of an act in the
// transaction that makes it, into its own log. So no process can open what another sealed.
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

// Kind is that of audit rows.
const Kind = "control"

// Socket is what it is called in the runtime directory of a process.
const Socket = "control.sock"

const (
	conns    = 32
	patience = 10 * time.Second // of one request
)

// Config of what a process serves. All fields are needed.
type Config struct {
	Socket   string
	Account  string // of the process of kind config, which alone may connect
	Policies *server.Policies
	Audit    *server.Audit
	Logger   *slog.Logger
}

// Endpoint is a method and path, who may call it, and what answers.
type Endpoint struct {
	Method, Path string
	Access       document.Access
	Answer       func(*Call) (any, error)
}

// Call is one request of an operator, with the row of an act.
type Call struct {
	R      *http.Request
	W      http.ResponseWriter
	Row    server.Row
	Policy document.Policy
}

// Body decodes a request of at most so many bytes. Nothing of what cannot be read is in the
// error, since it may be a secret.
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

// Run serves operators until ctx ends, once the policy has any.
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

// To has the process at a socket answer a request. The error is that it could not.
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
