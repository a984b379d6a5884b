package hostapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// callsTo returns a Calls whose provider answers with the handler h. It also returns a counter of
// the connections. It runs in virtual time.
func callsTo(t *testing.T, h http.HandlerFunc) (*hostapi.Calls, *atomic.Int32) {
	d := domain{t, kit.NewCA()}
	svid := d.Issue(provider, time.Hour)
	c, m := d.client(svid, nil), make(memory)
	d.serve(m, svid, h)
	dials := new(atomic.Int32)
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return m.dial(ctx, network, address)
	}
	p := c.Calls()
	t.Cleanup(p.Close)
	return p, dials
}

// all makes n calls at once, and returns the error and the duration of each call.
func all(n int, call func(need string) error) (failed []error, took []time.Duration) {
	failed, took = make([]error, n), make([]time.Duration, n)
	begin := time.Now()
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			failed[i] = call(fmt.Sprintf("need-%d", i))
			took[i] = time.Since(begin)
		})
	}
	running.Wait()
	return failed, took
}

func do(t *testing.T, p *hostapi.Calls) func(string) error {
	return func(need string) error {
		r := registration
		r.Need = need
		a, err := p.Do(t.Context(), hostapi.Path("oidc"), r)
		if err == nil && a.Values["need"] != need {
			return fmt.Errorf("%s has the answer of %s", need, a.Values["need"])
		}
		return err
	}
}

// answerNeed is a handler that answers each request with the name of its need.
func answerNeed(w http.ResponseWriter, r *http.Request) {
	var q hostapi.Request
	b, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(b, &q); err != nil {
		panic(err)
	}
	fmt.Fprintf(w, `{"values":{"need":%q}}`, q.Need)
}

// TestCalls checks that calls that begin together share one handshake, even if the provider refuses
// them.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Int32
		p, dials := callsTo(t, func(w http.ResponseWriter, r *http.Request) {
			if refused.Add(1) == 1 {
				w.WriteHeader(403)
				io.WriteString(w, `{"kind":"denied","code":"not-granted","message":"no","retryAfter":0}`)
				return
			}
			answerNeed(w, r)
		})
		failed, _ := all(12, do(t, p))
		denied := 0
		for _, err := range failed {
			if err != nil {
				denied++
				providertest.WantError(t, err, hostapi.CodeNotGranted)
			}
		}
		if denied != 1 || dials.Load() != 1 {
			t.Errorf("%d denied, %d connections, want 1 and 1", denied, dials.Load())
		}
	})
}

// TestPassBreaks checks that only the current call fails when the connection breaks.
func TestPassBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		p, dials := callsTo(t, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 2 {
				panic(http.ErrAbortHandler)
			}
			answerNeed(w, r)
		})
		failed, _ := all(5, do(t, p))
		broken := 0
		for _, err := range failed {
			if err != nil {
				broken++
			}
		}
		if broken != 1 || dials.Load() != 2 {
			t.Errorf("%d failed on %d connections, want 1 on 2", broken, dials.Load())
		}
	})
}

// TestPassStalls checks that a call that hangs delays the other calls by half a second, and not by
// its time limit of 30 seconds.
func TestPassStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		p, _ := callsTo(t, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 1 {
				io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
				return
			}
			answerNeed(w, r)
		})
		failed, took := all(5, do(t, p))
		hung := 0
		for i, err := range failed {
			switch {
			case err != nil && took[i] == 30*time.Second:
				hung++
			case err != nil || took[i] > time.Second:
				t.Errorf("%v after %s", err, took[i])
			}
		}
		if hung != 1 {
			t.Errorf("%d hung, want 1", hung)
		}
	})
}

// TestSwallowed checks that calls fail within two seconds if the provider reads everything and
// never answers. Several calls together must take no longer than one.
func TestSwallowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := domain{t, kit.NewCA()}
		c := d.client(d.Issue(provider, time.Hour), nil)
		c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		p := c.Calls()
		defer p.Close()
		failed, took := all(5, do(t, p))
		for i, err := range failed {
			providertest.WantError(t, err, hostapi.CodeUnavailable)
			if took[i] != 2*time.Second {
				t.Errorf("%v after %s, want 2s", err, took[i])
			}
		}
	})
}

// TestSilentHandshake checks that the client waits longer for a provider that accepts connections
// and sends nothing, because the provider may have other hosts to serve first. If there is another
// provider, the client must not wait.
func TestSilentHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := domain{t, kit.NewCA()}
		c := d.client(d.Issue(provider, time.Hour), nil)
		c.Dial = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go io.Copy(io.Discard, far)
			return near, nil
		}
		begin := time.Now()
		_, err := c.Do(t.Context(), hostapi.Path("oidc"), registration)
		providertest.WantError(t, err, hostapi.CodeUnavailable)
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// TestHedge checks that the client tries the next provider after two seconds if the first one is
// silent, and that it uses the first answer.
func TestHedge(t *testing.T) {
	for name, wants := range map[string]struct {
		after time.Duration // until the first provider answers; zero for never
		took  time.Duration
	}{
		"dead": {0, 2 * time.Second},
		"busy": {1500 * time.Millisecond, 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := domain{t, kit.NewCA()}
				spare := kit.ProviderID("spare", "cert")
				first, next := make(memory), make(memory)
				d.serve(first, d.Issue(provider, time.Hour), answerNeed)
				d.serve(next, d.Issue(spare, time.Hour), answerNeed)
				c := d.client(d.Issue(provider, time.Hour), nil)
				c.Provider.Addresses = document.Addresses{"first:1"}
				c.Others = []document.Provider{{ID: spare, Addresses: document.Addresses{"next:1"}}}
				var reached spiffe.ID
				c.Reached = func(id spiffe.ID) { reached = id }
				c.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
					if address == "next:1" {
						return next.dial(ctx, "", "")
					}
					if wants.after == 0 {
						near, far := net.Pipe()
						go io.Copy(io.Discard, far)
						return near, nil
					}
					time.Sleep(wants.after)
					return first.dial(ctx, "", "")
				}
				begin := time.Now()
				_, err := c.Do(t.Context(), hostapi.Path("oidc"), registration)
				if took := time.Since(begin); err != nil || took != wants.took {
					t.Errorf("%v after %s, want %s", err, took, wants.took)
				}
				if (reached == c.Provider.ID) != (wants.after != 0) {
					t.Errorf("it reached %s", reached)
				}
			})
		})
	}
}
