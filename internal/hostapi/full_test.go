package hostapi_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
)

// answerPlainly returns a dial function. Its connections answer the first bytes of a TLS handshake
// with a plain text.
func answerPlainly(answer string) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			far.Read(make([]byte, 4096))
			io.WriteString(far, answer)
		}()
		return near, nil
	}
}

// TestForgedPlace checks that an attacker between a host and its provider can delay the host by at
// most two minutes. The attacker forges the answer that the provider has no room for more hosts.
func TestForgedPlace(t *testing.T) {
	const full = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: "
	for name, v := range map[string]struct {
		answer string
		code   string
		after  int
	}{
		"a place":       {full + "7\r\nContent-Length: 0\r\n\r\n", hostapi.CodeFull.Name, 7},
		"a far one":     {full + "86400\r\n\r\n", hostapi.CodeFull.Name, 120},
		"none":          {full + "\r\n\r\n", hostapi.CodeUnavailable.Name, 0},
		"one before":    {full + "-7\r\n\r\n", hostapi.CodeUnavailable.Name, 0},
		"no number":     {full + "Fri, 31 Dec 2049 23:59:59 GMT\r\n\r\n", hostapi.CodeUnavailable.Name, 0},
		"too long":      {full + "7\r\nX: " + strings.Repeat("x", 4096) + "\r\n\r\n", hostapi.CodeUnavailable.Name, 0},
		"success":       {"HTTP/1.1 200 OK\r\nRetry-After: 7\r\n\r\n", hostapi.CodeUnavailable.Name, 0},
		"a redirection": {"HTTP/1.1 301 Moved\r\nRetry-After: 7\r\nLocation: https://192.0.2.1/\r\n\r\n", hostapi.CodeUnavailable.Name, 0},
		"no HTTP":       {"SSH-2.0-OpenSSH\r\n", hostapi.CodeUnavailable.Name, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := domain{t, kit.NewCA()}
				c := d.client(d.Issue(provider, time.Hour), nil)
				c.Dial = answerPlainly(v.answer)
				_, err := c.Do(t.Context(), hostapi.Path("oidc"), registration)
				e := hostapi.AsError(err)
				if e.Kind != hostapi.Transient || e.Code != v.code || e.RetryAfter != v.after {
					t.Errorf("%v with %d s, want %s (%s) with %d s", e, e.RetryAfter, hostapi.Transient, v.code, v.after)
				}
			})
		})
	}
}

// TestFull checks that a provider with a full queue tells the next host when to come back, before
// either of them does expensive work. If another provider can answer, the host must get its answer
// there at once.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := domain{t, kit.NewCA()}
		inner := kit.NewPipe()
		signed := 0
		svid := d.Issue(provider, time.Hour)
		s := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(io.Discard, "", 0)}
		go s.Serve(tls.NewListener(conns.Listen(inner, conns.Limit{Total: 10, Prefix: 10, Turns: 1, Wait: time.Millisecond}), &tls.Config{
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return nil, conns.Begin(hello.Conn) },
			GetCertificate:     func(*tls.ClientHelloInfo) (*tls.Certificate, error) { signed++; return svid, nil },
		}))
		defer s.Close()
		// One connection has its turn and is silent, another waits behind it.
		end := make(chan struct{})
		defer close(end)
		for range 2 {
			c, err := inner.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go tls.Client(silentAfterHello{c, end}, &tls.Config{InsecureSkipVerify: true}).Handshake()
			defer c.Close()
			synctest.Wait()
		}
		before := signed
		c := d.client(svid, nil)
		c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return inner.Dial(ctx) }
		began := time.Now()
		_, err := c.Do(t.Context(), hostapi.Path("oidc"), registration)
		if e := hostapi.AsError(err); e.Kind != hostapi.Transient || e.Code != hostapi.CodeFull.Name || e.RetryAfter != 1 || time.Since(began) > 0 || signed != before {
			t.Errorf("%v with %d s after %s, %d signatures, want %s with 1 s at once", e, e.RetryAfter, time.Since(began), signed-before, hostapi.CodeFull.Name)
		}

		spare, next := kit.ProviderID("spare", "cert"), make(memory)
		d.serve(next, d.Issue(spare, time.Hour), answerNeed)
		c.Provider.Addresses = document.Addresses{"first:1"}
		c.Others = []document.Provider{{ID: spare, Addresses: document.Addresses{"next:1"}}}
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "next:1" {
				return next.dial(ctx, network, address)
			}
			return inner.Dial(ctx)
		}
		if _, err := c.Do(t.Context(), hostapi.Path("oidc"), registration); err != nil || time.Since(began) > 0 {
			t.Errorf("with another provider: %v after %s, want its answer at once", err, time.Since(began))
		}
	})
}

// silentAfterHello is a connection on which the client receives nothing.
type silentAfterHello struct {
	net.Conn
	end <-chan struct{}
}

func (c silentAfterHello) Read([]byte) (int, error) {
	<-c.end
	return 0, io.EOF
}
