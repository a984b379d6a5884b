package server

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
)

// nonces is an Enroller that only returns nonces.
type nonces struct{ Enroller }

func (nonces) Nonce(time.Time) string { return "nonce" }

// TestTurn checks that a host keeps its turn after it has received a nonce, and while its request
// with the proof waits to be decided. The handshakes of other hosts have to wait meanwhile, because
// otherwise their requests would only lengthen that wait.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, began := kit.NewPipe(), time.Now()
		l := conns.Listen(inner, conns.Limit{Total: 10, Prefix: 10, Turns: 1})
		begin := func() net.Conn {
			go inner.Dial(t.Context())
			c, err := l.Accept()
			if err != nil || conns.Begin(c) != nil {
				t.Error("it does not begin", err)
			}
			return c
		}
		host, other := begin(), make(chan time.Duration)
		go func() {
			begin()
			other <- time.Since(began)
		}()
		s := &Server{Config: Config{Audit: NewAudit(nil, slog.New(slog.DiscardHandler))}, callers: conns.NewPerKey[string](1)}
		r := httptest.NewRequestWithContext(conns.Context(t.Context(), host), http.MethodPost, hostapi.PathNonce, nil)
		s.nonce(httptest.NewRecorder(), r, nonces{})
		conns.State(host, http.StateIdle)
		go func() {
			time.Sleep(100 * time.Millisecond)
			s.Request(r).Commit(r.Context(), nil, nil) // no slot is ever free
			conns.State(host, http.StateIdle)
		}()
		if after, want := <-other, 100*time.Millisecond+slotPatience; after != want {
			t.Errorf("the other host had its turn after %s, want %s", after, want)
		}
		time.Sleep(time.Minute)
	})
}
