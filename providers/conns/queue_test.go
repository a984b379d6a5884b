package conns_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/providers/conns"
	"github.com/florete/florete/tests/kit"
)

// served is a host's visit to a provider that had its turn.
type served struct {
	host, turnedAway int
	at               time.Duration
}

// storm has hosts come to a listener with one turn at a time, in order, and come back when they
// are told to. It returns their turns in order.
func storm(t *testing.T, hosts int, every, takes, wait time.Duration) (all []served) {
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
				if conns.Begin(c) == nil {
					time.Sleep(takes)
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
			for turnedAway := 0; ; turnedAway++ {
				answer, err := visit(t.Context(), inner)
				if err != nil {
					t.Errorf("host %d: %v", host, err)
					return
				}
				if answer.StatusCode == http.StatusOK {
					mu.Lock()
					all = append(all, served{host, turnedAway, time.Since(began)})
					mu.Unlock()
					return
				}
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

func visit(ctx context.Context, p *kit.Pipe) (*http.Response, error) {
	c, err := p.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return http.ReadResponse(bufio.NewReader(c), nil)
}

// TestFull: hosts that come ten times as fast as they are served are turned away once at most, come
// back in the order in which they came, and keep the provider busy all the time.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, takes = 400, 100 * time.Millisecond
		all := storm(t, hosts, takes/10, takes, 5*time.Second)
		if len(all) != hosts {
			t.Fatalf("%d hosts are served, want %d", len(all), hosts)
		}
		if last := all[hosts-1].at; last > hosts*takes*11/10 {
			t.Errorf("the last is served after %s, want %s at most: the provider was idle", last, hosts*takes*11/10)
		}
		var away []int
		for _, s := range all {
			if s.turnedAway > 1 {
				t.Errorf("host %d was turned away %d times, want once at most", s.host, s.turnedAway)
			}
			if s.turnedAway > 0 {
				away = append(away, s.host)
			}
		}
		if len(away) < hosts/4 {
			t.Errorf("%d hosts are turned away, want most of those that found no room", len(away))
		}
		sorted := slices.Sorted(slices.Values(away))
		for i, host := range away {
			// Times to come back are in whole seconds: so many come together.
			if of := slices.Index(sorted, host); max(of-i, i-of) > int(2*time.Second/takes) {
				t.Errorf("host %d is number %d of those that come back, want %d", host, i, of)
			}
		}
	})
}

// TestNotFull: hosts that find room within the bound are not turned away.
func TestNotFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, s := range storm(t, 40, 0, 100*time.Millisecond, 5*time.Second) {
			if s.turnedAway > 0 {
				t.Errorf("host %d was turned away", s.host)
			}
		}
	})
}

// TestGone: a connection whose peer closed it while it waited has no turn.
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
	if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // its end is here
		t.Fatal(err)
	}
	if err := conns.Begin(ours); !errors.Is(err, conns.ErrGone) {
		t.Errorf("a connection that its peer closed: %v, want %v", err, conns.ErrGone)
	}
}
