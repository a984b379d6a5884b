package journal_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/journal"
)

// output collects the output of a log. It is safe for concurrent use.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (o *output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b.Reset()
}

func lines(b *output, with string) (n int) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}

// TestStrangersAndPeers checks that events from many unknown addresses cause few lines. An event of
// a known peer must still be logged at once. When the unknown sources are gone, the Summary must
// keep no state about them.
func TestStrangersAndPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		l := journal.NewSummary(slog.New(slog.NewTextHandler(&out, nil)), time.Minute)
		for i := range 100_000 {
			l.Warn(journal.Source{Reason: "unknown-name", Who: fmt.Sprint("192.0.2.", i%5000)}, "refused", "detail", i)
		}
		l.Warn(journal.Source{Reason: "denied", Who: "user/alice", Known: true}, "refused", "peer", "alice")
		if n := lines(&out, "refused"); n > 300 || lines(&out, "peer=alice") != 1 {
			t.Errorf("%d lines, %d of alice, want few and 1", n, lines(&out, "peer=alice"))
		}
		out.Reset()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := lines(&out, ""); n > 300 || lines(&out, "more=19") != 256 || lines(&out, "from=others") != 1 || lines(&out, "alice") != 0 {
			t.Errorf("%d lines after an interval: %.2000s", n, out.String())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		out.Reset()
		l.Warn(journal.Source{Reason: "unknown-name", Who: "192.0.2.9999"}, "refused", "detail", "later")
		if lines(&out, "detail=later") != 1 {
			t.Errorf("a stranger after a quiet interval: %q", out.String())
		}
	})
}

// TestFew checks that an event is logged at once if a whole interval has passed without it.
func TestFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		l := journal.NewSummary(slog.New(slog.NewTextHandler(&out, nil)), time.Minute)
		k := journal.Source{Reason: "upstream-refused", Who: "user/alice", Known: true}
		for range 3 {
			l.Warn(k, "refused")
			time.Sleep(3 * time.Minute)
		}
		if lines(&out, "refused") != 3 || lines(&out, "more=") != 0 {
			t.Errorf("got %q, want three plain lines", out.String())
		}
	})
}

// TestClose checks that Close logs the events that were counted.
func TestClose(t *testing.T) {
	var out output
	l := journal.NewSummary(slog.New(slog.NewTextHandler(&out, nil)), time.Hour)
	for range 5 {
		l.Warn(journal.Source{Reason: "denied", Who: "user/alice", Known: true}, "refused")
	}
	l.Close()
	if lines(&out, "more=4") != 1 {
		t.Errorf("got %q, want a line for the four", out.String())
	}
}

func TestAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1:5":          "192.0.2.1",
		"[::ffff:192.0.2.1]:5": "192.0.2.1",
		"[2001:db8::1:2]:5":    "2001:db8::/64",
	} {
		if got := journal.Address(netip.MustParseAddrPort(addr)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
