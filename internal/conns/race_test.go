package conns_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/tests/kit"
)

// attempt is the planned result of an attempt to connect to an address, with its duration.
type attempt struct {
	after time.Duration
	err   error
	deaf  bool // true if the attempt ignores the end of its context
}

// run calls Race with the addresses, in virtual time. Each attempt goes as in plan. The results
// also contain the time at which each attempt began, and the connections that were discarded.
func run(t *testing.T, addresses []string, plan map[string]attempt) (won string, began map[string]time.Duration, discarded []string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		began = map[string]time.Duration{}
		var running atomic.Int32
		tried := make(chan string, len(addresses))
		at := make(chan time.Duration, len(addresses))
		won, err = conns.Race(t.Context(), addresses, func(ctx context.Context, a string) (string, error) {
			running.Add(1)
			defer running.Add(-1)
			tried <- a
			at <- time.Since(start)
			p := plan[a]
			if p.deaf {
				time.Sleep(p.after)
			} else {
				select {
				case <-time.After(p.after):
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
			return a, p.err
		}, func(a string) { discarded = append(discarded, a) })
		if n := running.Load(); n != 0 {
			t.Errorf("%d attempts outlive the race", n)
		}
		for range len(tried) {
			began[<-tried] = <-at
		}
	})
	return won, began, discarded, err
}

func TestFirst(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		plan      map[string]attempt
		won       string
		began     map[string]time.Duration
		discarded []string
	}{
		"the first answers":       {map[string]attempt{"a": {after: 200 * time.Millisecond}}, "a", map[string]time.Duration{"a": 0}, nil},
		"the first is silent":     {map[string]attempt{"a": {after: time.Hour}}, "b", map[string]time.Duration{"a": 0, "b": conns.RaceStagger}, nil},
		"the first fails at once": {map[string]attempt{"a": {err: refused}}, "b", map[string]time.Duration{"a": 0, "b": 0}, nil},
		"the first is slow":       {map[string]attempt{"a": {after: 300 * time.Millisecond}, "b": {after: time.Minute}}, "a", map[string]time.Duration{"a": 0, "b": conns.RaceStagger}, nil},
		"only the last is good": {
			map[string]attempt{"a": {after: time.Hour}, "b": {after: time.Second, err: refused}}, "c",
			map[string]time.Duration{"a": 0, "b": conns.RaceStagger, "c": 2 * conns.RaceStagger}, nil,
		},
		"both answer": {
			map[string]attempt{"a": {after: 2 * time.Second, deaf: true}, "b": {after: time.Second}}, "b",
			map[string]time.Duration{"a": 0, "b": conns.RaceStagger, "c": 2 * conns.RaceStagger}, []string{"a"},
		},
	} {
		plan := map[string]attempt{"b": {}, "c": {after: time.Hour}}
		if name == "only the last is good" {
			plan["c"] = attempt{}
		}
		maps.Copy(plan, c.plan)
		won, began, discarded, err := run(t, []string{"a", "b", "c"}, plan)
		if err != nil || won != c.won || !slices.Equal(discarded, c.discarded) {
			t.Errorf("%s: %q wins, %v are discarded, %v", name, won, discarded, err)
		}
		for a, want := range c.began {
			if got, ok := began[a]; !ok || got != want {
				t.Errorf("%s: %s began after %s (%v), want %s", name, a, got, ok, want)
			}
		}
		if len(began) != len(c.began) {
			t.Errorf("%s: tried %v, want %v", name, began, c.began)
		}
	}
}

func TestFirstFails(t *testing.T) {
	one, two := errors.New("one is refused"), errors.New("two is refused")
	_, _, _, err := run(t, []string{"a", "b"}, map[string]attempt{"a": {err: one, after: time.Second}, "b": {err: two}})
	if !errors.Is(err, one) || !errors.Is(err, two) || !strings.Contains(err.Error(), "; ") {
		t.Errorf("error %v, want both", err)
	}
	if _, _, _, err := run(t, nil, nil); err == nil {
		t.Error("no error although there is no address")
	}
}

// TestCanceled checks that Race returns when its context ends, with the error of the context.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := conns.Race(ctx, []string{"a", "b"}, func(ctx context.Context, _ string) (int, error) {
		cancel()
		<-ctx.Done()
		return 0, ctx.Err()
	}, func(int) {})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
}

func TestResolve(t *testing.T) {
	kit.Names(t, map[string][]string{"two.example.org": {"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"}})
	for _, c := range []struct{ in, want string }{
		{"192.0.2.7:4610", "192.0.2.7:4610"},
		{"[2001:db8::7]:4610", "[2001:db8::7]:4610"},
	} {
		if got, err := conns.Resolve(t.Context(), c.in); err != nil || len(got) != 1 || got[0].String() != c.want {
			t.Errorf("%s: %v, %v", c.in, got, err)
		}
	}
	got, err := conns.Resolve(t.Context(), "two.example.org:4610")
	if err != nil || len(got) != 4 {
		t.Fatalf("%v, %v, want four addresses", got, err)
	}
	// The host's own policy determines which family comes first.
	if six := slices.IndexFunc(got, func(a netip.AddrPort) bool { return a.Addr().Is6() }); six > 1 || got[0].Port() != 4610 {
		t.Errorf("%v: the families do not take turns", got)
	}
	for _, bad := range []string{"192.0.2.7", "192.0.2.7:http", "192.0.2.7:70000", "none.example.org:4610"} {
		if got, err := conns.Resolve(t.Context(), bad); err == nil {
			t.Errorf("%s: %v, want an error", bad, got)
		}
	}
}
