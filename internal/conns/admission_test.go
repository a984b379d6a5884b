package conns_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/tests/kit"
)

// served is a host that waited at a provider and got its turn.
type served struct {
	host, turnedAway, left int
	at                     time.Duration
}

// Waiting times. A host waits for its turn for at most patience. The constant wait has the same
// value as in package server.
const (
	wait     = 30 * time.Second
	patience = time.Minute
)

// storm simulates hosts that connect to a listener with a single turn, one after each interval
// every. A host that is turned away comes back when the provider tells it to. A host whose patience
// ended comes back a second later. The function takes returns the duration of a turn; its argument
// is the time since the first host came. The result lists the hosts in the order of their turns.
func storm(t *testing.T, hosts int, every time.Duration, takes func(since time.Duration) time.Duration) (all []served) {
	inner := kit.NewPipe()
	l := conns.Listen(inner, conns.Limit{Total: hosts, Prefix: hosts, Turns: 1, Wait: wait})
	began := time.Now()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if conns.Begin(c) == nil && !left(c) {
					time.Sleep(takes(time.Since(began)))
					c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
				}
			}()
		}
	}()
	var mu sync.Mutex
	var done sync.WaitGroup
	for host := range hosts {
		done.Go(func() {
			time.Sleep(time.Duration(host) * every)
			for s := (served{host: host}); ; {
				answer, err := visit(t.Context(), inner)
				switch {
				case errors.Is(err, os.ErrDeadlineExceeded):
					s.left++
					time.Sleep(time.Second)
					continue
				case err != nil:
					t.Errorf("host %d: %v", host, err)
					return
				case answer.StatusCode == http.StatusOK:
					mu.Lock()
					s.at = time.Since(began)
					all = append(all, s)
					mu.Unlock()
					return
				}
				s.turnedAway++
				after, err := strconv.Atoi(answer.Header.Get("Retry-After"))
				if err != nil || answer.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("host %d: %v, want a time to come back", host, answer)
					return
				}
				time.Sleep(time.Duration(after) * time.Second)
			}
		})
	}
	done.Wait()
	l.Close()
	return all
}

// left reports whether a peer in memory has closed its connection. Begin cannot see this.
func left(c net.Conn) bool {
	c.SetReadDeadline(time.Now())
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

func visit(ctx context.Context, p *kit.Pipe) (*http.Response, error) {
	c, err := p.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(c), nil)
}

// TestFull checks a provider to which hosts come faster than it can serve them. No host may wait
// for a handshake until its patience ends. Few hosts may be turned away, and no host often. The
// provider must be busy until all hosts are served.
func TestFull(t *testing.T) {
	always := func(d time.Duration) func(time.Duration) time.Duration {
		return func(time.Duration) time.Duration { return d }
	}
	for _, c := range []struct {
		name       string
		hosts      int
		takes      func(since time.Duration) time.Duration
		busy, last time.Duration // time when all are served at best, and at worst
		often      int           // limit for the number of times that one host is turned away
	}{
		{"as quick as was guessed", 5000, always(6 * time.Millisecond), 30 * time.Second, 31 * time.Second, 0},
		{"half as quick", 5000, always(12 * time.Millisecond), time.Minute, 66 * time.Second, 1},
		{"three times as many", 15000, always(6 * time.Millisecond), 90 * time.Second, 99 * time.Second, 3},
		{"slow at first", 5000, func(since time.Duration) time.Duration {
			if since < 10*time.Second {
				return 30 * time.Millisecond
			}
			return 6 * time.Millisecond
		}, 38 * time.Second, 50 * time.Second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := storm(t, c.hosts, time.Millisecond, c.takes)
				if len(all) != c.hosts {
					t.Fatalf("%d hosts are served, want %d", len(all), c.hosts)
				}
				if at := all[c.hosts-1].at; at < c.busy || at > c.last {
					t.Errorf("the last is served after %s, want %s to %s", at, c.busy, c.last)
				}
				for _, s := range all {
					if s.turnedAway > c.often || s.left > 0 {
						t.Fatalf("host %d was turned away %d times, want %d at most, and left %d times, want none", s.host, s.turnedAway, c.often, s.left)
					}
				}
				inOrder(t, all)
			})
		})
	}
}

// inOrder checks that hosts that were turned away once come back in the order in which they came.
// If hundreds come at the same time, some may change places, because the times to come back are in
// whole seconds.
func inOrder(t *testing.T, all []served) {
	t.Helper()
	latest := 0
	for _, s := range all {
		if s.turnedAway == 1 {
			latest = max(latest, s.host)
			if latest-s.host > 500 {
				t.Fatalf("host %d had its turn after host %d", s.host, latest)
			}
		}
	}
}

// TestNotFull checks that a host is not turned away if there is room for it.
func TestNotFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, s := range storm(t, 40, 0, func(time.Duration) time.Duration { return 100 * time.Millisecond }) {
			if s.turnedAway > 0 {
				t.Errorf("host %d was turned away", s.host)
			}
		}
	})
}

// TestGone checks that a connection gets no turn if its peer closed it while it waited.
func TestGone(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := conns.Listen(inner, conns.Limit{Total: 10, Prefix: 10, Turns: 1})
	defer l.Close()
	connect := func() (theirs, ours net.Conn) {
		t.Helper()
		theirs, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if ours, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		return theirs, ours
	}
	_, first := connect()
	if err := conns.Begin(first); err != nil {
		t.Fatal(err)
	}
	left, ours := connect()
	left.Close()
	if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // the end of the connection has arrived
		t.Fatal(err)
	}
	if err := conns.Begin(ours); !errors.Is(err, conns.ErrGone) {
		t.Errorf("a connection that its peer closed: %v, want %v", err, conns.ErrGone)
	}
}
