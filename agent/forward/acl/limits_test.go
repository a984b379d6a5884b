package acl_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

var (
	wiki, chat = kit.ID("service/wiki"), kit.ID("service/chat")
	ann, bob   = kit.ID("user/ann"), kit.ID("user/bob")
)

// apply puts limits of wiki, and of ann, in force.
func apply(t *acl.Limits, service, caller document.Limits) {
	t.Apply(document.Forwarder{
		Publish: []document.Published{{ID: chat}, {ID: wiki, Limits: service}},
		Limits:  []document.CallerLimits{{ID: ann, Limits: caller}},
	})
}

// open checks that a connection is admitted, or refused with want.
func open(t *testing.T, s *acl.Share, want string) (release func()) {
	t.Helper()
	release, err := s.Open()
	if got := words(err); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	return release
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSuffix(err.Error(), " here, which is its limit")
}

// TestConnections checks that the lower of both limits decides, and that a refused connection is
// counted at neither.
func TestConnections(t *testing.T) {
	var table acl.Limits
	s, other, elsewhere := table.Share(wiki, ann), table.Share(wiki, bob), table.Share(chat, ann)
	open(t, s, "")
	apply(&table, document.Limits{Connections: 3}, document.Limits{Connections: 2})
	release := open(t, elsewhere, "")
	open(t, s, "user/ann has 2 TCP connections and UDP sessions")
	open(t, other, "")
	open(t, other, "")
	open(t, other, "service/wiki has 3 TCP connections and UDP sessions")
	release()
	open(t, s, "service/wiki has 3 TCP connections and UDP sessions")
	open(t, elsewhere, "")
	open(t, elsewhere, "user/ann has 2 TCP connections and UDP sessions")
}

func TestOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table acl.Limits
		apply(&table, document.Limits{}, document.Limits{OpensPerSecond: 2})
		s := table.Share(wiki, ann)
		for range 3 {
			open(t, s, "")()
			open(t, s, "")()
			open(t, s, "user/ann has more than 2 opens a second")
			time.Sleep(500 * time.Millisecond)
			open(t, s, "")()
			open(t, s, "user/ann has more than 2 opens a second")
			time.Sleep(time.Second)
		}
		open(t, s, "")()
		open(t, s, "")()
		apply(&table, document.Limits{}, document.Limits{OpensPerSecond: 100})
		time.Sleep(100 * time.Millisecond)
		for range 10 {
			open(t, s, "")()
		}
		open(t, s, "user/ann has more than 100 opens a second")
	})
}

// carry returns the number of bytes that the streams of a share carry until a time.
func carry(s *acl.Share, streams int, end time.Time) (total int) {
	stop := make(chan struct{})
	time.AfterFunc(time.Until(end), func() { close(stop) })
	var mu sync.Mutex
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			for time.Now().Before(end) {
				n := min(s.Most(), 256<<10)
				s.Wait(stop, n)
				mu.Lock()
				total += n
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return total
}

// TestBytesAreShared checks that callers of a service get equal shares of its bytes, however many
// streams each has.
func TestBytesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, seconds = 1_000_000, 100
		var table acl.Limits
		apply(&table, document.Limits{BytesPerSecond: rate}, document.Limits{})
		var few, many int
		var both sync.WaitGroup
		end := time.Now().Add(seconds * time.Second)
		both.Go(func() { few = carry(table.Share(wiki, bob), 1, end) })
		both.Go(func() { many = carry(table.Share(wiki, ann), 50, end) })
		both.Wait()
		if all := few + many; all < rate*seconds*98/100 || all > rate*seconds*105/100 {
			t.Errorf("%d bytes in %d s, want %d a second", all, seconds, rate)
		}
		if few < many*9/10 {
			t.Errorf("one stream of bob carries %d bytes, 50 of ann %d", few, many)
		}
	})
}

// TestBytesOfANewLimit checks that a stream that waits follows new limits.
func TestBytesOfANewLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table acl.Limits
		s := table.Share(wiki, ann)
		s.Wait(nil, 1<<40)
		apply(&table, document.Limits{}, document.Limits{BytesPerSecond: 1000})
		began := time.Now()
		s.Wait(nil, 64<<10) // goes at once
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the first bytes wait for %s", waited)
		}
		time.AfterFunc(10*time.Second, func() { apply(&table, document.Limits{}, document.Limits{}) })
		s.Wait(nil, 1<<30)
		if waited := time.Since(began); waited < 10*time.Second || waited > 12*time.Second {
			t.Errorf("waited for %s, want until there is no limit", waited)
		}
		apply(&table, document.Limits{BytesPerSecond: 1000}, document.Limits{})
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		began = time.Now()
		s.Wait(stop, 1<<30)
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("waited for %s, want until the stream ends", waited)
		}
	})
}

func TestDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table acl.Limits
		s := table.Share(wiki, ann)
		for range 2 {
			if !s.Allow(65507) {
				t.Error("dropped without a limit")
			}
		}
		apply(&table, document.Limits{BytesPerSecond: 10_000}, document.Limits{BytesPerSecond: 1000})
		if !s.Allow(65507) || s.Allow(1000) {
			t.Error("want the largest datagram to pass, and nothing behind it")
		}
		time.Sleep(time.Second)
		if !s.Allow(1000) || s.Allow(1000) {
			t.Error("want 1000 bytes after a second")
		}
	})
}

// TestRelayLimits checks that each node has the limits of a relay for itself, beside its limits as a
// caller of a service on the same host.
func TestRelayLimits(t *testing.T) {
	vertex, nas, tv := kit.ID("vertex/gate"), kit.ID("node/nas"), kit.ID("node/tv")
	var table acl.Limits
	relaying := func(l document.Limits) {
		table.Apply(document.Forwarder{
			Publish: []document.Published{{ID: wiki}}, Relay: &document.Relaying{ID: vertex, Limits: l},
			Limits: []document.CallerLimits{{ID: nas, Limits: document.Limits{Connections: 1}}},
		})
	}
	relaying(document.Limits{Connections: 2})
	for _, node := range []spiffe.ID{nas, tv} {
		through := table.Share(vertex, node)
		open(t, through, "")
		open(t, through, "")
		open(t, through, node.Short()+" has 2 TCP connections and UDP sessions")
	}
	service := table.Share(wiki, nas)
	open(t, service, "")
	open(t, service, "node/nas has 1 TCP connections and UDP sessions")
	relaying(document.Limits{Connections: 3})
	open(t, table.Share(vertex, nas), "")
	open(t, table.Share(vertex, nas), "node/nas has 3 TCP connections and UDP sessions")
	table.Apply(document.Forwarder{})
	open(t, table.Share(vertex, tv), "")
}
