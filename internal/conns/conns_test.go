package conns_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/tests/kit"
)

// site is an HTTP server with a limit of its connections. A request for /vouched marks its caller
// as verified. A request for /held waits.
type site struct {
	*testing.T
	address string
	held    chan struct{}
}

func serve(t *testing.T, limit conns.Limit) *site {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t, l.Addr().String(), make(chan struct{})}
	hs := &http.Server{
		ConnContext: conns.Context,
		ConnState:   conns.State,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/vouched":
				conns.Vouch(r.Context())
			case "/held":
				<-s.held
			}
		}),
	}
	go hs.Serve(conns.Listen(l, limit))
	t.Cleanup(func() { close(s.held); hs.Close() })
	return s
}

// open connects to the site from an address, and sends the text says.
func (s *site) open(from, says string) net.Conn {
	s.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(s.Context(), "tcp", s.address)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, says); err != nil {
		s.Fatal(err)
	}
	return c
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n" }

// answered checks that the site answers on a connection.
func (s *site) answered(what string, c net.Conn) {
	s.Helper()
	c.SetDeadline(time.Now().Add(kit.Patience))
	if _, err := c.Read(make([]byte, 4096)); err != nil {
		s.Errorf("%s: %v, want an answer", what, err)
	}
}

// closed checks that the site closes a connection.
func (s *site) closed(what string, c net.Conn) {
	s.Helper()
	c.SetDeadline(time.Now().Add(kit.Patience))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		s.Errorf("%s: %v, want its end", what, err)
	}
}

// kept checks that the site still serves a connection.
func (s *site) kept(what string, c net.Conn) {
	s.Helper()
	if _, err := io.WriteString(c, get("/")); err != nil {
		s.Errorf("%s: %v", what, err)
		return
	}
	s.answered(what, c)
}

// TestSilent checks that connections are closed to make room if they send nothing, send half a
// request or take long to answer. The connection whose last progress is the oldest is closed first.
func TestSilent(t *testing.T) {
	s := serve(t, conns.Limit{Total: 4, Prefix: 4})
	for _, c := range []struct{ what, says string }{
		{"silent", ""}, {"half a request", "GET / HTTP/1.1\r\nHo"}, {"idle", get("/")}, {"held", get("/held")},
	} {
		slow := s.open("127.0.0.1", c.says)
		if c.what == "idle" {
			s.answered(c.what, slow)
		}
		// The limit learns that an answer was the last one only after it was sent, so more
		// connections may be needed.
		for gone := false; !gone; {
			s.answered("new", s.open("127.0.0.1", get("/")))
			slow.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := slow.Read(make([]byte, 1))
			gone = err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// TestGreedy checks that the network with the most connections loses a connection, even if its
// connections are newer.
func TestGreedy(t *testing.T) {
	s := serve(t, conns.Limit{Total: 4, Prefix: 4})
	old := s.open("127.0.0.2", "")
	first := s.open("127.0.0.1", "")
	s.open("127.0.0.1", "")
	s.open("127.0.0.1", "")
	s.answered("new", s.open("127.0.0.3", get("/")))
	s.closed("first of three", first)
	s.kept("alone of its network", old)
}

// TestPrefix checks that a network that has reached its limit loses one of its own connections.
func TestPrefix(t *testing.T) {
	s := serve(t, conns.Limit{Total: 8, Prefix: 2})
	other := s.open("127.0.0.2", "")
	first := s.open("127.0.0.1", "")
	second := s.open("127.0.0.1", "")
	s.answered("third", s.open("127.0.0.1", get("/")))
	s.closed("first", first)
	s.kept("second", second)
	s.kept("other", other)
}

// TestVouched checks that no other connection takes the place of a verified caller, and that the
// place becomes free when the caller disconnects.
func TestVouched(t *testing.T) {
	s := serve(t, conns.Limit{Total: 2, Prefix: 2})
	a, b := s.open("127.0.0.1", get("/vouched")), s.open("127.0.0.1", get("/vouched"))
	s.answered("a", a)
	s.answered("b", b)
	s.closed("beyond", s.open("127.0.0.1", ""))
	s.closed("beyond, another", s.open("127.0.0.2", ""))
	s.kept("a", a)
	s.kept("b", b)
	a.Close()
	kit.Succeeds(t, "room after one was closed", func() error {
		c := s.open("127.0.0.1", get("/"))
		c.SetDeadline(time.Now().Add(kit.Patience))
		_, err := c.Read(make([]byte, 1))
		return err
	})
}

func TestPrefixOf(t *testing.T) {
	for peer, want := range map[string]string{
		"192.0.2.1:4600": "192.0.2.1/32", "[::ffff:192.0.2.1]:4600": "192.0.2.1/32",
		"[2001:db8::1]:4600": "2001:db8::/64", "[fe80::1%eth0]:4600": "fe80::/64", "@": "invalid Prefix", "": "invalid Prefix",
	} {
		if got := conns.Prefix(peer).String(); got != want {
			t.Errorf("%q: %s, want %s", peer, got, want)
		}
	}
}

// roomForOne returns a site with room for one silent connection and for one connection that has
// begun. The function connect connects a peer.
func roomForOne(t *testing.T) (s *site, connect func() (theirs, ours net.Conn)) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = &site{T: t, address: inner.Addr().String()}
	l := conns.Listen(inner, conns.Limit{Total: 1, Prefix: 1})
	t.Cleanup(func() { l.Close() })
	return s, func() (theirs, ours net.Conn) {
		t.Helper()
		theirs = s.open("127.0.0.1", "")
		if ours, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ours.Close() })
		return theirs, ours
	}
}

// TestBegin checks which connections make room. A silent peer takes the place of a silent peer
// only. A peer that begins takes the place of a peer that has begun. A verified peer takes no
// place.
func TestBegin(t *testing.T) {
	s, connect := roomForOne(t)
	open := func(what string, theirs, ours net.Conn) {
		t.Helper()
		if _, err := ours.Write([]byte("x")); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		s.answered(what, theirs)
	}
	theirs, begun := connect()
	if conns.Begin(begun) != nil {
		t.Error("one that is there does not begin")
	}
	silent, late := connect()
	connect()
	s.closed("silent", silent)
	if !errors.Is(conns.Begin(late), conns.ErrGone) {
		t.Error("one that made room begins")
	}
	open("begun", theirs, begun)
	_, second := connect()
	conns.Begin(second)
	s.closed("begun first", theirs)

	theirs, verified := connect()
	conns.Begin(verified)
	conns.Release(verified)
	_, third := connect()
	conns.Begin(third)
	open("verified", theirs, verified)
	if !errors.Is(conns.Begin(theirs), conns.ErrGone) {
		t.Error("one of no Listener begins")
	}
}

// TestBeginFull checks that a new connection is closed if all connections that have begun are
// verified.
func TestBeginFull(t *testing.T) {
	s, connect := roomForOne(t)
	for _, first := range []bool{true, false} {
		theirs, ours := connect()
		if (conns.Begin(ours) == nil) != first {
			t.Errorf("begins: %v, want %v", !first, first)
		}
		if first {
			conns.Vouch(conns.Context(t.Context(), ours))
		} else {
			s.closed("beyond", theirs)
		}
	}
}

// TestTurns checks that connections that begin together get their turns in order, and that a slow
// connection keeps its turn for half a second.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := kit.NewPipe()
		l := conns.Listen(inner, conns.Limit{Total: 10, Prefix: 10, Turns: 1})
		began := time.Now()
		turns := make(chan int, 3)
		for i := range 3 {
			go inner.Dial(t.Context())
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				if conns.Begin(c) == nil {
					turns <- i
				}
				if i == 1 {
					c.Close()
				}
			}()
			synctest.Wait()
		}
		for i, after := range []time.Duration{0, 500 * time.Millisecond, 500 * time.Millisecond} {
			if got := <-turns; got != i || time.Since(began) != after {
				t.Errorf("turn %d is of %d after %s, want it after %s", i, got, time.Since(began), after)
			}
		}
		time.Sleep(time.Second)
	})
}

// TestKeptTurns checks that a connection keeps its turn beyond an answer if the handler wants so, and
// for as long as the server makes its peer wait.
func TestKeptTurns(t *testing.T) {
	for name, test := range map[string]struct {
		serve func(context.Context, net.Conn)
		want  time.Duration // when the next connection has its turn
	}{
		"answered": {func(_ context.Context, c net.Conn) { conns.State(c, http.StateIdle) }, 0},
		"answered twice": {func(ctx context.Context, c net.Conn) {
			conns.KeepTurn(ctx)
			conns.State(c, http.StateIdle)
			time.Sleep(100 * time.Millisecond)
			conns.State(c, http.StateIdle)
		}, 100 * time.Millisecond},
		"answered once of two": {func(ctx context.Context, c net.Conn) {
			conns.KeepTurn(ctx)
			conns.State(c, http.StateIdle)
		}, 500 * time.Millisecond},
		"waits": {func(ctx context.Context, c net.Conn) {
			resume := conns.HoldTurn(ctx)
			time.Sleep(10 * time.Second)
			resume()
			conns.State(c, http.StateIdle)
		}, 10 * time.Second},
		"waits and reads no answer": {func(ctx context.Context, c net.Conn) {
			resume := conns.HoldTurn(ctx)
			time.Sleep(10 * time.Second)
			resume()
		}, 10*time.Second + 500*time.Millisecond},
		"waits without a turn": {func(ctx context.Context, c net.Conn) {
			conns.EndTurn(ctx)
			conns.HoldTurn(ctx)()
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := kit.NewPipe()
				l := conns.Listen(inner, conns.Limit{Total: 10, Prefix: 10, Turns: 1})
				began := func() net.Conn {
					go inner.Dial(t.Context())
					c, err := l.Accept()
					if err != nil || conns.Begin(c) != nil {
						t.Fatal("it does not begin", err)
					}
					return c
				}
				first, at := began(), time.Now()
				go test.serve(conns.Context(t.Context(), first), first)
				began()
				if waited := time.Since(at); waited != test.want {
					t.Errorf("the next connection has its turn after %s, want %s", waited, test.want)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestTurnsPace checks that turns last longer if verified callers take long, and that silent
// strangers do not prolong turns.
func TestTurnsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := kit.NewPipe()
		l := conns.Listen(inner, conns.Limit{Total: 1000, Prefix: 1000, Turns: 1})
		begin := func() net.Conn {
			t.Helper()
			go inner.Dial(t.Context())
			c, err := l.Accept()
			if err != nil || conns.Begin(c) != nil {
				t.Fatal("it does not begin", err)
			}
			return c
		}
		life := func() time.Duration {
			began := begin()
			at := time.Now()
			begin().Close()
			began.Close()
			return time.Since(at)
		}
		for _, v := range []struct {
			what     string
			takes    time.Duration
			verified bool
			want     time.Duration
		}{
			{"strangers", 3 * time.Second, false, 500 * time.Millisecond},
			{"slow", time.Second, true, 2 * time.Second},
			{"too slow", time.Minute, true, 5 * time.Second},
			{"quick", time.Millisecond, true, 500 * time.Millisecond},
		} {
			for range 200 {
				c := begin()
				time.Sleep(v.takes)
				if v.verified {
					conns.Vouch(conns.Context(t.Context(), c))
				}
				conns.EndTurn(conns.Context(t.Context(), c))
				c.Close()
			}
			if got := life().Round(10 * time.Millisecond); got != v.want {
				t.Errorf("%s: a turn lasts %s, want %s", v.what, got, v.want)
			}
		}
	})
}
