package announced

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
	"github.com/florete/florete/providers/server"
)

// OperatorKind is the name that audit rows contain as the kind for requests of operators.
const OperatorKind = "control"

// OperatorSocket is the name of the Unix socket for operators' requests in a process's runtime
// directory.
const OperatorSocket = "control.sock"

const (
	operatorConnections = 32
	operatorPatience    = 10 * time.Second // of one request
)

// OperatorConfig configures RunOperators. All fields are required.
type OperatorConfig struct {
	Socket   string
	Account  string // account of the process of kind config, which alone may connect
	Policies *server.Policies
	Audit    *server.Audit
	Logger   *slog.Logger
}

// Endpoint is one operation that operators can request from a provider process. Its function Answer
// is called only if the operator has the access that the field Access names. The value that Answer
// returns is sent as JSON.
type Endpoint struct {
	Method, Path string
	Access       document.Access
	Answer       func(*Call) (any, error)
}

// Call is one request of an operator. Row is the audit row about the request. An Endpoint that
// changes something fills in the remaining fields of Row and stores it together with the change.
type Call struct {
	R      *http.Request
	W      http.ResponseWriter
	Row    server.Row
	Policy document.Policy
}

// Body decodes the JSON body of the request into v. If the body is larger than most bytes or does
// not match v, the error is an *hostapi.Error. It never contains a part of the body, which may be a
// secret.
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

// RunOperators answers requests of operators at a Unix socket until ctx ends. The requests arrive
// through the process that serves the operators' API, which calls Relay. RunOperators begins to
// listen once the policy names an operator.
func RunOperators(ctx context.Context, c OperatorConfig, endpoints ...Endpoint) {
	refusals := Refusals{Kind: OperatorKind, Audit: c.Audit, Logger: c.Logger}
	mux := http.NewServeMux()
	for _, e := range endpoints {
		mux.HandleFunc(e.Method+" "+e.Path, func(w http.ResponseWriter, r *http.Request) {
			deadline := time.Now().Add(operatorPatience)
			_ = http.NewResponseController(w).SetReadDeadline(deadline)
			_ = http.NewResponseController(w).SetWriteDeadline(deadline)
			call := &Call{R: r, W: w, Row: refusals.Row(r), Policy: c.Policies.Newest()}
			err := Operator(r, call.Policy, e.Access)
			var answer any
			if err == nil {
				answer, err = e.Answer(call)
			}
			if err != nil {
				refusal := refusals.Refuse(w, r, call.Row, err)
				Reply(w, refusal.Status(), refusal)
				return
			}
			Reply(w, http.StatusOK, answer)
		})
	}
	Run(ctx, Config{
		Socket: c.Socket, Forwarder: c.Account, Service: spiffe.ControlService, Kind: OperatorKind,
		Conns: operatorConnections, ConnsOfCaller: operatorConnections / 4, Audit: c.Audit, Logger: c.Logger,
		Wanted:  func() bool { return len(c.Policies.Current().Operators) > 0 },
		Handler: mux,
	})
}

// Relay forwards a request, and the identity of its sender, to the process that listens at a Unix
// socket, and copies the response to w. If that process cannot be reached or does not respond,
// Relay returns an error and writes nothing.
func Relay(socket string, w http.ResponseWriter, r *http.Request) (failed error) {
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: r.Host})
			p.Out.Host = r.Host
			p.Out.URL.Path = r.URL.Path
		},
		// The header is of a connection, so each request has one of its own.
		Transport: &http.Transport{
			DisableKeepAlives:     true,
			ResponseHeaderTimeout: operatorPatience,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialOperator(ctx, socket, From(r.Context()), r.RemoteAddr)
			},
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(w, r)
	return failed
}

// dialOperator connects to a socket, and sends the header that announces a caller.
func dialOperator(ctx context.Context, socket string, caller Caller, from string) (net.Conn, error) {
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
