package announce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/florete/florete/agent/forward/splice"
)

// HTTP forwards the HTTP requests of one caller's connection to a service. It parses each request
// and writes it anew, so that the service and the forwarder agree on where each request ends. It
// uses one connection to the service at a time.
//
// HTTP supports HTTP/1.0, HTTP/1.1 and the upgrade to WebSocket. It refuses CONNECT, HTTP/2 and all
// other upgrades, because they could carry requests that the forwarder does not see.
type HTTP struct {
	Caller   Caller
	Gated    bool                                       // refuse callers that are not users, and name the user in headers
	Upstream splice.Conn                                // connection for the first request; Serve closes it
	Dial     func(context.Context) (splice.Conn, error) // makes a new connection after the service has closed the last one
	Failed   func(error)                                // called with the reason if the service does not answer
}

// Serve forwards the requests that arrive on c. It returns when c is closed or ctx ends, and then
// closes the connection to the service.
func (h HTTP) Serve(ctx context.Context, c *Conn) {
	defer context.AfterFunc(ctx, c.abort)()
	first := make(chan splice.Conn, 1)
	first <- h.Upstream
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case conn := <-first:
				if open(conn) {
					return conn, nil
				}
				conn.Close()
			default:
			}
			return h.Dial(ctx)
		},
		DisableCompression:    true,
		ExpectContinueTimeout: time.Second,
	}
	server := &http.Server{
		Handler:                      h.handler(transport, c),
		ErrorLog:                     quiet,
		DisableGeneralOptionsHandler: true,
		MaxHeaderBytes:               maxHeaders,
	}
	_ = server.Serve(&single{conn: c})
	transport.CloseIdleConnections()
	select {
	case conn := <-first:
		conn.Close()
	default:
	}
	c.finish()
}

// maxHeaders is the maximum size in bytes of a request's headers. It bounds the memory that a
// stream uses. Common servers have a similar limit.
const maxHeaders = 64 << 10

// quiet discards the log messages of net/http, with which a caller could fill the log. HTTP.Failed
// receives the errors of the service.
var quiet = log.New(io.Discard, "", 0)

func (h HTTP) handler(transport http.RoundTripper, c *Conn) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport:      transport,
		Rewrite:        h.rewrite,
		ModifyResponse: refuseUnaskedUpgrade,
		FlushInterval:  -1,
		BufferPool:     buffers{},
		ErrorLog:       quiet,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			var body *bodyError
			switch {
			case errors.As(err, &body):
				http.Error(w, "the request's body cannot be read", http.StatusBadRequest)
			case r.Context().Err() != nil:
				panic(http.ErrAbortHandler) // the caller has gone
			case usedOf(r).closed():
				// The service closed the connection between two requests, just when this request
				// arrived. Callers expect this of any HTTP server: their connection ends without an
				// answer.
				panic(http.ErrAbortHandler)
			default:
				h.Failed(err)
				http.Error(w, "the service does not answer", http.StatusBadGateway)
			}
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.ProtoMajor != 1:
			http.Error(w, "want HTTP/1.1", http.StatusHTTPVersionNotSupported)
			return
		case r.Method == http.MethodConnect:
			http.Error(w, "CONNECT is not carried", http.StatusNotImplemented)
			return
		case h.Gated && !h.Caller.IsPerson():
			http.Error(w, fmt.Sprintf("Inside the cluster, %s is for users, and %s is not a user.", h.Caller.Name(), h.Caller.ID.Short()), http.StatusForbidden)
			return
		}
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			r.Header.Del("Upgrade")
		}
		// An answer may begin before the request has ended, and both may continue at the same time.
		_ = http.NewResponseController(w).EnableFullDuplex()
		defer func() {
			if p := recover(); p != nil {
				c.abort() // so that half an answer is not taken for a complete one
				panic(p)
			}
		}()
		proxy.ServeHTTP(&answer{ResponseWriter: w}, traced(r))
	})
}

// used records whether the connection to the service that last carried a request was reused, and
// whether the service answered on it.
type used struct{ reused, answered atomic.Bool }

type usedKey struct{}

// traced returns a copy of r that records which connection to the service it uses.
func traced(r *http.Request) *http.Request {
	u := new(used)
	ctx := context.WithValue(r.Context(), usedKey{}, u)
	return r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { // called again for another attempt
			u.reused.Store(false)
			u.answered.Store(false)
		},
		GotConn:              func(i httptrace.GotConnInfo) { u.reused.Store(i.Reused) },
		GotFirstResponseByte: func() { u.answered.Store(true) },
	}))
}

func usedOf(r *http.Request) *used { return r.Context().Value(usedKey{}).(*used) }

// closed reports whether the service closed an idle connection at the moment when a request was
// sent on it. It assumes so if the connection carried an earlier request and no byte of an answer
// to this one arrived.
func (u *used) closed() bool { return u.reused.Load() && !u.answered.Load() }

// answer is an http.ResponseWriter that sends the headers of the service and adds none of its own.
// This includes the headers of informational answers (RFC 9110, section 15.2).
type answer struct{ http.ResponseWriter }

// Unwrap returns the underlying ResponseWriter. The http.ResponseController calls it.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader sends the status code and the headers of the service to the caller. From
// informational answers, it removes hop-by-hop headers (RFC 9110, section 7.6.1). To the final
// answer, it adds none of the default headers of net/http.
func (a *answer) WriteHeader(code int) {
	h := a.Header()
	switch {
	case code == http.StatusSwitchingProtocols:
	case code >= 100 && code < 200:
		for _, nominated := range h["Connection"] {
			for name := range strings.SplitSeq(nominated, ",") {
				h.Del(strings.TrimSpace(name))
			}
		}
		for _, name := range hopByHop {
			h.Del(name)
		}
	default: // adds no headers that the service left out
		for _, name := range []string{"Content-Type", "Date"} {
			if _, ok := h[name]; !ok {
				h[name] = nil
			}
		}
	}
	a.ResponseWriter.WriteHeader(code)
}

// hopByHop lists the hop-by-hop headers that are removed even if the Connection header does not
// name them.
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func (h HTTP) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = "http", h.Caller.Name()
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} { // set by the caller, like any other header
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
	h.Caller.announce(r.Out.Header)
	strip(r.Out.Trailer, ours)
	if h.Gated {
		h.Caller.introduce(r.Out.Header)
		strip(r.Out.Trailer, persons)
	}
	if r.Out.Body != nil {
		r.Out.Body = &body{r.Out.Body, r}
	}
}

func refuseUnaskedUpgrade(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols && res.Request.Header.Get("Upgrade") == "" {
		return errors.New("the service switches protocols unasked")
	}
	return nil
}

// body is the body of a request. At the end of the body it copies the trailers that the caller
// announced.
type body struct {
	io.ReadCloser
	r *httputil.ProxyRequest
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		for name := range b.r.Out.Trailer {
			b.r.Out.Trailer[name] = b.r.In.Trailer[name]
		}
	default:
		err = &bodyError{err}
	}
	return n, err
}

// bodyError is an error that occurred while the body of a request was read from the caller. With
// this type, the errors of the caller can be distinguished from the errors of the service.
type bodyError struct{ error }

func (e *bodyError) Unwrap() error { return e.error }

// buffers is a pool of the buffers with which bodies are copied.
type buffers struct{}

const bufferSize = 64 << 10

var pool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

func (buffers) Get() []byte  { return pool.Get().(*[bufferSize]byte)[:] }
func (buffers) Put(b []byte) { pool.Put((*[bufferSize]byte)(b)) }
