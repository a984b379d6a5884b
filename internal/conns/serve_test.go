package conns_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/tests/kit"
)

// fetch requests a page from the server behind the listener l.
func fetch(l *kit.Pipe) (*http.Response, error) {
	c := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) },
	}}
	return c.Get("http://server/")
}

// TestServe checks that the server still answers open requests during the grace period after its
// context ended.
func TestServe(t *testing.T) {
	for _, test := range []struct {
		name   string
		takes  time.Duration // duration of the request
		served bool
	}{
		{"within the grace", 3 * time.Second, true},
		{"beyond the grace", time.Minute, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				l, ended, got := kit.NewPipe(), make(chan error, 1), make(chan string, 1)
				hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-time.After(test.takes):
						io.WriteString(w, "served")
					case <-r.Context().Done():
					}
				})}
				go func() { ended <- conns.Serve(ctx, hs, l) }()
				go func() {
					r, err := fetch(l)
					if err != nil {
						got <- ""
						return
					}
					defer r.Body.Close()
					b, _ := io.ReadAll(r.Body)
					got <- string(b)
				}()
				synctest.Wait()
				began := time.Now()
				cancel()
				if err := <-ended; err != nil {
					t.Errorf("%v at its end", err)
				}
				if d := time.Since(began); d > 6*time.Second || test.served && d < test.takes {
					t.Errorf("it ended after %s", d)
				}
				if b := <-got; (b == "served") != test.served {
					t.Errorf("answer %q", b)
				}
			})
		})
	}
}

// TestServeWaits checks that Serve waits for handlers whose connections were closed, so that they
// can end and log. It must not wait for handlers that hang.
func TestServeWaits(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{time.Second: 6 * time.Second, time.Minute: 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			l, ended := kit.NewPipe(), make(chan error, 1)
			hs := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				time.Sleep(takes)
			})}
			go func() { ended <- conns.Serve(ctx, hs, l) }()
			go fetch(l)
			synctest.Wait()
			began := time.Now()
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("%v at its end", err)
			}
			if d := time.Since(began); d != want {
				t.Errorf("it ended after %s, want %s", d, want)
			}
			time.Sleep(takes) // until all goroutines of the test have ended
		})
	}
}

type broken struct{ *kit.Pipe }

var errBroken = errors.New("too many open files")

func (broken) Accept() (net.Conn, error) { return nil, errBroken }

// TestServeFails checks that Serve returns the error of a listener that fails.
func TestServeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := conns.Serve(t.Context(), &http.Server{}, broken{kit.NewPipe()}); !errors.Is(err, errBroken) {
			t.Errorf("%v, want that of the listener", err)
		}
	})
}
