package hostapi_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

var (
	ursula       = kit.ID("node/ursula")
	provider     = kit.ProviderID("drhorrible", "cert")
	registration = hostapi.Request{Need: "a", Body: json.RawMessage(`{}`)}
)

// domain is a trust domain in which clients and servers of tests have certificates. It has no
// provider process.
type domain struct {
	t *testing.T
	*kit.CA
}

// client returns a client of a server that presents the given certificate and answers with the
// handler h.
func (d domain) client(server *tls.Certificate, h http.HandlerFunc) *hostapi.Client {
	d.t.Helper()
	return &hostapi.Client{
		Node: ursula, Provider: document.Provider{ID: provider, Addresses: document.Addresses{"127.0.0.1:1"}}, Roots: d.Roots(), SVID: d.Issue(ursula, time.Hour),
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			d.serve(l, server, h)
			return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
		},
	}
}

// serve runs an HTTP server with the handler h on the listener l until the test ends.
func (d domain) serve(l net.Listener, svid *tls.Certificate, h http.HandlerFunc) {
	config := &tls.Config{Certificates: []tls.Certificate{*svid}, ClientAuth: tls.RequestClientCert}
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	var ended sync.WaitGroup
	ended.Go(func() { s.Serve(tls.NewListener(l, config)) })
	d.t.Cleanup(func() { s.Close(); ended.Wait() })
}

// memory is a listener whose connections are pipes in memory, because virtual time does not work
// with sockets.
type memory chan net.Conn

func (m memory) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	m <- far
	return near, nil
}

func (m memory) Accept() (net.Conn, error) {
	c, ok := <-m
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (m memory) Close() error   { close(m); return nil }
func (m memory) Addr() net.Addr { return &net.TCPAddr{} }

// TestProviders checks that a client sends requests only to a server that proves to be its
// provider.
func TestProviders(t *testing.T) {
	d, stranger := domain{t, kit.NewCA()}, kit.NewCA()
	for name, c := range map[string]struct {
		presents *tls.Certificate
		kind     hostapi.Class
		code     string
		says     string
	}{
		"another service": {d.Issue(kit.ID("service/outline"), time.Hour), hostapi.Transient, hostapi.CodeUntrusted.Name, "presents spiffe://demo.flor/service/outline, want " + provider.String()},
		"another's node":  {d.Issue(kit.ProviderID("raishan", "cert"), time.Hour), hostapi.Transient, hostapi.CodeUntrusted.Name, "check its address"},
		"a stranger":      {stranger.Issue(provider, time.Hour), hostapi.Transient, hostapi.CodeUntrusted.Name, "unknown authority"},
		"an expired one":  {d.Issue(provider, -time.Second), hostapi.Transient, hostapi.CodeClock.Name, "renew it or set the clock"},
		"the root itself": {&tls.Certificate{Certificate: [][]byte{d.Root.Certificate.Raw}, PrivateKey: d.Root.Key}, hostapi.Transient, hostapi.CodeUntrusted.Name, "want spiffe://<trust-domain>"},
	} {
		t.Run(name, func(t *testing.T) {
			client := d.client(c.presents, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
			_, err := client.Do(t.Context(), hostapi.Path("oidc"), registration)
			providertest.WantError(t, err, hostapi.Code{Name: c.code, Class: c.kind})
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want …%s…", err, c.says)
			}
		})
	}
}

// TestOddAnswers checks that a client treats anything that a provider sends as an answer, a refusal
// or a transient error.
func TestOddAnswers(t *testing.T) {
	d := domain{t, kit.NewCA()}
	svid := d.Issue(provider, time.Hour)
	text := func(status int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	const denied = `{"kind":"denied","code":"not-granted","message":"no","retryAfter":0}`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		kind   hostapi.Class
		code   string
		after  int
		says   string
	}{
		"a refusal":      {text(403, denied), hostapi.Denied, hostapi.CodeNotGranted.Name, 0, "no"},
		"Retry-After":    {text(403, denied, "Retry-After", "7"), hostapi.Denied, hostapi.CodeNotGranted.Name, 7, "no"},
		"for ever":       {text(403, denied, "Retry-After", "999999999"), hostapi.Denied, hostapi.CodeNotGranted.Name, 3600, "no"},
		"before now":     {text(403, strings.Replace(denied, ":0", ":-5", 1)), hostapi.Denied, hostapi.CodeNotGranted.Name, 0, "no"},
		"HTML":           {text(502, "<html>"), hostapi.Transient, hostapi.CodeUnavailable.Name, 0, "answered with status 502 and what is no answer: "},
		"no kind":        {text(403, strings.Replace(denied, "denied", "odd", 1)), hostapi.Transient, hostapi.CodeUnavailable.Name, 0, `error kind "odd": want "transient", "denied" or "invalid"`},
		"no code":        {text(403, strings.Replace(denied, "not-granted", "", 1)), hostapi.Transient, hostapi.CodeUnavailable.Name, 0, `with code "": want one such as`},
		"lines as code":  {text(403, strings.Replace(denied, "not-granted", `x\nREADY=1`, 1)), hostapi.Transient, hostapi.CodeUnavailable.Name, 0, `with code "x\nREADY=1"`},
		"a long message": {text(403, strings.Replace(denied, `"no"`, `"`+strings.Repeat("é", 4096)+`"`, 1)), hostapi.Denied, hostapi.CodeNotGranted.Name, 0, strings.Repeat("é", 2048) + "…"},
		"nothing":        {text(200, ""), hostapi.Transient, hostapi.CodeUnavailable.Name, 0, "unexpected end"},
		"another answer": {text(200, `{"values":{},"more":1}`), hostapi.Transient, hostapi.CodeUnavailable.Name, 0, `unknown field "more"`},
		"a newer one":    {text(200, `{"values":{},"more":1}`, document.HeaderFormat, "1.99"), hostapi.Transient, hostapi.CodeNewerFormat.Name, 0, "newer format than " + document.NewestFormat.String() + `, unknown field "more": upgrade`},
		"no values":      {text(200, `{}`), hostapi.Transient, hostapi.CodeUnavailable.Name, 0, "no values"},
		"too long":       {text(200, strings.Repeat(" ", hostapi.MaxAnswer+1)), hostapi.Transient, hostapi.CodeUnavailable.Name, 0, "longer than 8388608 bytes"},
		"a long header":  {text(200, `{"values":{"a":"b"}}`, "More", strings.Repeat("x", 20<<10)), hostapi.Transient, hostapi.CodeUnavailable.Name, 0, "EOF"},
		"a redirect":     {text(302, "", "Location", "/elsewhere"), hostapi.Transient, hostapi.CodeUnavailable.Name, 0, "status 302"},
		"hung up":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, hostapi.Transient, hostapi.CodeUnavailable.Name, 0, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.client(svid, c.answer).Do(t.Context(), hostapi.Path("oidc"), registration)
			providertest.WantError(t, err, hostapi.Code{Name: c.code, Class: c.kind})
			var e *hostapi.Error
			if errors.As(err, &e); e.RetryAfter != c.after || !strings.Contains(e.Message, c.says) {
				t.Errorf("got %v after %d, want …%s… after %d", err, e.RetryAfter, c.says, c.after)
			}
		})
	}
}

// TestLongDocuments checks that a client accepts long documents up to a limit, and that bytes after
// the documents count towards the limit.
func TestLongDocuments(t *testing.T) {
	d := domain{t, kit.NewCA()}
	long := func(n int) error {
		c := d.client(d.Issue(provider, time.Hour), func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"documents":[]}`+strings.Repeat(" ", n-16))
		})
		_, err := c.Artifact(t.Context())
		return err
	}
	if err := long(hostapi.MaxArtifact); err != nil {
		t.Error(err)
	}
	err := long(hostapi.MaxArtifact + 1)
	providertest.WantError(t, err, hostapi.CodeUnavailable)
	if !strings.Contains(err.Error(), "longer than 33554432 bytes") {
		t.Error(err)
	}
}

// TestNotModified checks that a client accepts status 304 only if its request named the documents
// that the host has.
func TestNotModified(t *testing.T) {
	d := domain{t, kit.NewCA()}
	c := d.client(d.Issue(provider, time.Hour), func(w http.ResponseWriter, r *http.Request) {
		if has := r.Header.Get("If-None-Match"); has != "" && has != `"sha256-x"` {
			t.Errorf("If-None-Match: %s", has)
		}
		w.WriteHeader(http.StatusNotModified)
	})
	_, err := c.Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeUnavailable)
	c.Tag = `"sha256-x"`
	if a, err := c.Artifact(t.Context()); err != nil || !a.NotModified || a.Documents != nil {
		t.Errorf("got %+v, %v", a, err)
	}
	_, err = c.Do(t.Context(), hostapi.Path("oidc"), registration)
	providertest.WantError(t, err, hostapi.CodeUnavailable)
}

func TestAnswer(t *testing.T) {
	d := domain{t, kit.NewCA()}
	c := d.client(d.Issue(provider, time.Hour), func(w http.ResponseWriter, r *http.Request) {
		want, err := registration.Key(ursula)
		if err != nil || r.Header.Get(hostapi.HeaderKey) != want || r.URL.Path != hostapi.Path("oidc") || len(r.TLS.PeerCertificates) != 2 {
			t.Errorf("%s, key %q, %v", r.URL, r.Header.Get(hostapi.HeaderKey), err)
		}
		io.WriteString(w, `{"values":{"a":"b"},"expires":5}`)
	})
	a, err := c.Do(t.Context(), hostapi.Path("oidc"), registration)
	if err != nil || a.Values["a"] != "b" || a.Expires != 5 {
		t.Errorf("got %v, %v", a, err)
	}
}

func TestBeforeEnrolment(t *testing.T) {
	c := &hostapi.Client{Node: ursula}
	_, err := c.Do(t.Context(), hostapi.Path("oidc"), registration)
	providertest.WantError(t, err, hostapi.CodeUntrusted)
	_, err = c.Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeUntrusted)
}

func TestUnreachable(t *testing.T) {
	d := domain{t, kit.NewCA()}
	c := d.client(&tls.Certificate{}, nil)
	c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }
	_, err := c.Do(t.Context(), hostapi.Path("oidc"), registration)
	providertest.WantError(t, err, hostapi.CodeUnavailable)
	if want := "provider service/drhorrible/florete-provider-cert at 127.0.0.1:1: no route"; !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want …%s", err, want)
	}
}

// TestTimeout checks, in virtual time, that a call to a provider that never answers fails after 30
// seconds.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := domain{t, kit.NewCA()}
		svid := d.Issue(provider, time.Hour)
		c, m := d.client(svid, nil), make(memory)
		c.Dial = m.dial
		d.serve(m, svid, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
		begin := time.Now()
		_, err := c.Do(t.Context(), hostapi.Path("oidc"), registration)
		providertest.WantError(t, err, hostapi.CodeUnavailable)
		if waited := time.Since(begin); waited != 30*time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}
