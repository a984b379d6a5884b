package announce

import (
	"context"
	"errors"
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

// HTTP carries the requests of one caller's connection, over one connection to the service
// at a time. What reaches the service is written anew from what was understood, so that it
// and the forwarder agree where each request ends.
//
// HTTP/1.1 and 1.0 are carried, and what becomes of them by the upgrade to WebSocket. Others
// would carry requests that nobody reads here: they are not upgraded to, and CONNECT and
// HTTP/2 are refused.
type HTTP struct {
	Caller   Caller
	Upstream splice.Conn                                // for the first request; Serve closes it
	Dial     func(context.Context) (splice.Conn, error) // for those after the service closed that
	Failed   func(error)                                // is called with why the service did not answer
}

// Serve carries requests until c or ctx ends.
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

// maxHeaders bounds what a caller has the forwarder hold of each stream: more than services
// take.
const maxHeaders = 64 << 10

// quiet drops what a caller could fill the log with; Failed has what matters.
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
				panic(http.ErrAbortHandler) // nobody waits for an answer
			case usedOf(r).closed():
				// The service closed a connection between two requests, as this one came. Callers
				// know that of any server: to them the connection ends, without an answer.
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
		}
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			r.Header.Del("Upgrade")
		}
		// An answer may come before the request has ended, and they may go on together.
		_ = http.NewResponseController(w).EnableFullDuplex()
		defer func() {
			if p := recover(); p != nil {
				c.abort() // nobody takes half an answer for a whole one
				panic(p)
			}
		}()
		proxy.ServeHTTP(&answer{ResponseWriter: w}, traced(r))
	})
}

// used records what became of the connection over which a request last went to the service.
type used struct{ reused, answered atomic.Bool }

type usedKey struct{}

// traced returns r with a record of the connection that it takes to the service.
func traced(r *http.Request) *http.Request {
	u := new(used)
	ctx := context.WithValue(r.Context(), usedKey{}, u)
	return r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { // for another attempt, too
			u.reused.Store(false)
			u.answered.Store(false)
		},
		GotConn:              func(i httptrace.GotConnInfo) { u.reused.Store(i.Reused) },
		GotFirstResponseByte: func() { u.answered.Store(true) },
	}))
}

func usedOf(r *http.Request) *used { return r.Context().Value(usedKey{}).(*used) }

// closed reports whether a request that failed went over a connection that had carried another, and
// got no byte of an answer.
func (u *used) closed() bool { return u.reused.Load() && !u.answered.Load() }

// answer is a ResponseWriter in whose answers, informational ones too (RFC 9110 section 15.2), are
// the headers of the service alone.
type answer struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader leaves out of an informational answer what is for the connection that it came over
// (RFC 9110 section 7.6.1), and makes up nothing in the final one.
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
	default: // what the service leaves out is not made up
		for _, name := range []string{"Content-Type", "Date"} {
			if _, ok := h[name]; !ok {
				h[name] = nil
			}
		}
	}
	a.ResponseWriter.WriteHeader(code)
}

// hopByHop are the headers of a connection that need not be nominated.
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func (h HTTP) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = "http", h.Caller.Name()
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} { // the caller's word, as any other
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
	h.Caller.announce(r.Out.Header)
	strip(r.Out.Trailer)
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

// body is a request's. Where it ends there are the trailers that were announced.
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

// bodyError says that a request does not go on as it began.
type bodyError struct{ error }

func (e *bodyError) Unwrap() error { return e.error }

// buffers carry bodies.
type buffers struct{}

const bufferSize = 64 << 10

var pool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

func (buffers) Get() []byte  { return pool.Get().(*[bufferSize]byte)[:] }
func (buffers) Put(b []byte) { pool.Put((*[bufferSize]byte)(b)) }
