package database

import (
	"bufio"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/tests/kit"
)

// opened is a connection with a login, for which no more than that is configured.
func opened(t *testing.T, has map[string]string, s serveraccount.Server) (*redis, error) {
	t.Helper()
	s.User = has["user"]
	b, err := openRedis(t.Context(), s, has["password"])
	if err != nil {
		return nil, err
	}
	return b.(*redis), nil
}

func commands(t *testing.T, has map[string]string, s serveraccount.Server, commands ...string) error {
	t.Helper()
	r, err := opened(t, has, s)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, c := range commands {
		if _, err := r.do(strings.Fields(c)...); err != nil {
			return err
		}
	}
	return nil
}

// TestRedisRotations is like TestRotations, with two passwords of one user. Open connections stay
// open.
func TestRedisRotations(t *testing.T) {
	t.Parallel()
	s, dir := redisAt(t)
	f := newFixture(t, s, dir, "pool_cache")
	var has atomic.Value
	first := f.Reads()
	has.Store(first)
	open, err := opened(t, first, s)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	var pool sync.WaitGroup
	var over atomic.Bool
	var rounds [2]atomic.Int64
	defer pool.Wait()
	defer over.Store(true)
	for i := range rounds {
		pool.Go(func() {
			for ; !over.Load(); rounds[i].Add(1) {
				if err := commands(t, has.Load().(map[string]string), s, "INCR pool_cache:n", "EXPIRE pool_cache:n 60", "SELECT 0"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	late := func() {
		for i := range rounds {
			before := rounds[i].Load()
			kit.Eventually(t, "two more rounds", func() bool { return rounds[i].Load() >= before+2 || t.Failed() })
		}
	}
	for i := range 3 {
		late()
		f.Grant.Generation++
		former, next := has.Load().(map[string]string), f.Reads()
		if former["password"] == next["password"] || former["user"] != next["user"] {
			t.Fatalf("rotation %d: not another password of the same user", i)
		}
		late()
		f.Passes(overlap - time.Minute)
		late()
		has.Store(next)
		late()
		f.Passes(2 * time.Minute)
		if commands(t, former, s, "PING") == nil {
			t.Errorf("rotation %d: the former password works after the overlap", i)
		}
		late()
	}
	if _, err := open.do("GET", "pool_cache:n"); err != nil {
		t.Errorf("a connection from before: %v", err)
	}
}

// TestRedisOthers checks what a user is not permitted to do, and that the user is removed after it
// leaves the topology.
func TestRedisOthers(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(*testing.T) (serveraccount.Server, string){"redis": redisAt, "valkey": valkeyAt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := at(t)
			testRedisOthers(t, s, dir)
		})
	}
}

func testRedisOthers(t *testing.T, s serveraccount.Server, dir string) {
	f, other := newFixture(t, s, dir, "some_cache"), newFixture(t, s, dir, "other_cache")
	has := f.Reads()
	if err := commands(t, other.Reads(), s, "SET other_cache:k 1"); err != nil {
		t.Fatal(err)
	}
	if err := commands(t, has, s, "SET some_cache:k v", "PUBLISH some_cache:c m"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{
		"GET other_cache:k", "SET k v", "PUBLISH other_cache:c m", "KEYS *", "SCAN 0", "RANDOMKEY", "DBSIZE", "FLUSHALL", "FLUSHDB", "ACL LIST", "CONFIG GET *", "SELECT 1",
		"CLIENT LIST", "MONITOR", "PUBSUB CHANNELS", "SCRIPT FLUSH", "FUNCTION FLUSH", "SCRIPT LOAD x", "EVALSHA x 0", "EVAL_RO return(1) 0", "FCALL f 0", "FUNCTION LIST",
		"CLIENT TRACKING ON BCAST", "CLIENT TRACKING ON", "CLIENT CACHING YES", "CLIENT TRACKINGINFO", "CLIENT GETREDIR", "MEMORY STATS", "MEMORY USAGE some_cache:k", "MEMORY DOCTOR", "CLIENT KILL TYPE normal", "INFO", "EVAL return(redis.call('GET','other_cache:k')) 0", "SWAPDB 0 1", "SHUTDOWN NOSAVE",
	} {
		if err := commands(t, has, s, c); err == nil || !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "No permissions") && !strings.Contains(err.Error(), "can't access") {
			t.Errorf("%s: %v, want it refused", c, err)
		}
	}
	// Users outlive the server.
	users, err := opened(t, map[string]string{"user": "florete", "password": "providers"}, s)
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	open, err := opened(t, has, s)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	granted := f.Grant
	f.Grant.Kind = ""
	f.Passes(time.Minute)
	if _, err := open.do("PING"); err == nil {
		t.Error("a connection is still open although no policy names the user")
	}
	if commands(t, has, s, "PING") == nil {
		t.Error("it logs in although no policy names it")
	}
	f.Grant = granted
	if again := f.Reads(); again["password"] != has["password"] || commands(t, has, s, "GET some_cache:k") != nil {
		t.Error("named again it is not as it was")
	}
	f.Grant.Kind = ""
	f.Passes(time.Minute)
	f.Passes(31 * 24 * time.Hour)
	f.wantActs(2, 1)
	if keys, err := users.do("EXISTS", "some_cache:k"); err != nil || keys != int64(0) {
		t.Errorf("%v of its keys are there after 30 days, %v", keys, err)
	}
	if is, err := users.list("ACL", "GETUSER", "some_cache"); err != nil || is != nil {
		t.Errorf("the user is there after 30 days: %v, %v", is, err)
	}
	if keys, err := users.do("EXISTS", "other_cache:k"); err != nil || keys != int64(1) {
		t.Errorf("another's keys are gone, %v", err)
	}
}

// TestRedisLost checks that without its state, the provider adds a password and keeps the one that
// hosts have.
func TestRedisLost(t *testing.T) {
	t.Parallel()
	s, dir := redisAt(t)
	f := newFixture(t, s, dir, "lost_cache")
	has := f.Reads()
	f.lose(dir)
	next := f.Reads()
	for _, has := range []map[string]string{has, next} {
		if err := commands(t, has, s, "PING"); err != nil {
			t.Error(err)
		}
	}
	f.Passes(overlap + time.Minute)
	if commands(t, has, s, "PING") == nil || commands(t, next, s, "PING") != nil {
		t.Error("after the overlap not the new password alone works")
	}
}

// TestRedisVanished checks that a user that the server lost, or that somebody disabled, works again
// without a request.
func TestRedisVanished(t *testing.T) {
	t.Parallel()
	s, dir := redisAt(t)
	f := newFixture(t, s, dir, "vanished_cache")
	has := f.Reads()
	admin, err := openRedis(t.Context(), s, "providers")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, lose := range [][]string{{"ACL", "DELUSER", "vanished_cache"}, {"ACL", "SETUSER", "vanished_cache", "off"}, {"ACL", "SETUSER", "vanished_cache", "resetpass"}} {
		if err := admin.(*redis).run(lose...); err != nil {
			t.Fatal(err)
		}
		if commands(t, has, s, "PING") == nil {
			t.Fatalf("%q: it logs in", lose)
		}
		f.Passes(time.Minute)
		if err := commands(t, has, s, "PING"); err != nil {
			t.Errorf("%q: %v", lose, err)
		}
	}
	if got := f.acts(CodeRestored); got != 3 {
		t.Errorf("%d rows of what was made anew, want 3", got)
	}
}

// TestRedisStates checks that a refusal names the problem of the server and the remedy.
func TestRedisStates(t *testing.T) {
	t.Parallel()
	s, dir := redisAt(t)
	users, err := opened(t, map[string]string{"user": "florete", "password": "providers"}, s)
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	if _, err := users.do("ACL", "SETUSER", "powerless", "on", ">providers", "+ping"); err != nil {
		t.Fatal(err)
	}
	for want, edit := range map[string]func(s *serveraccount.Server){
		"connection refused":           func(s *serveraccount.Server) { s.Address = "127.0.0.1:1" },
		"would cross the network":      func(s *serveraccount.Server) { s.Address = "192.0.2.1:6379" },
		"WRONGPASS":                    func(s *serveraccount.Server) { s.User = "nobody" },
		"allow the provider's user ~*": func(s *serveraccount.Server) { s.User = "powerless" },
	} {
		s := s
		edit(&s)
		if got := newFixture(t, s, dir, "states_cache").Refused(); !strings.Contains(got, want) || strings.Contains(got, `"providers"`) {
			t.Errorf("%q, want %q in it, and no password", got, want)
		}
	}
}

// FuzzReply checks that replies of a server are bounded in size, and that a valid reply is read to
// its end.
func FuzzReply(f *testing.F) {
	for _, s := range []string{"+OK\r\n", "-ERR no\r\n", ":7\r\n", "$3\r\nabc\r\n", "$-1\r\n", "*2\r\n$1\r\n0\r\n*0\r\n", "*-1\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "$-2\r\n", "$9999999999\r\n", "\r\n", "*65537\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		in := bufio.NewReader(strings.NewReader(s))
		v, err := readReply(in, 0)
		if text, is := v.(string); is && err == nil && len(text) > len(s) {
			t.Errorf("%q: %q", s, text)
		}
	})
}
