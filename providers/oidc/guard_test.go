package oidc

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dex "github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"golang.org/x/crypto/bcrypt"

	"github.com/florete/florete/tests/kit"
)

// TestGuessing checks that after a few wrong passwords further tries are slowed down, even with the
// right password. This reveals no account names, and does not affect browsers that signed in
// before.
func TestGuessing(t *testing.T) {
	f := newFixture(t)
	delivered := f.register(1)
	alice, stranger := f.service(delivered), f.service(delivered)
	alice.signIn("state", "verifier")
	page := stranger.begin("state", "verifier")
	for _, account := range []string{"nobody@demo.flor", email} {
		for i := range freeGuesses {
			if p := stranger.submit(page, account, "wrong"); p.status != http.StatusUnauthorized {
				t.Errorf("guess %d of %s: status %d", i, account, p.status)
			}
		}
		stranger.slowed(page, account, "wrong")
	}
	stranger.slowed(page, email, password)
	alice.signIn("state", "verifier")
	kit.Eventually(t, "the right password to be taken, after the delay", func() bool {
		return stranger.submit(page, email, password).location != nil
	})
}

// slowed checks that a guess is refused because it comes too early. On a slow machine, the first
// delays may end before the next guess.
func (s *service) slowed(p page, account, guess string) {
	s.t.Helper()
	got := page{}
	for range 2 * freeGuesses {
		if got = s.submit(p, account, guess); got.status == http.StatusTooManyRequests && got.location == nil {
			return
		}
	}
	s.t.Errorf("%s is guessed without delay: status %d", account, got.status)
}

func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		alice, bob := guesser{"account", "alice"}, guesser{"account", "bob"}
		for range freeGuesses {
			if wait := g.guess(alice); wait > 0 {
				t.Fatalf("wait %s", wait)
			}
		}
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			want *= time.Second
			for range 3 { // early guesses do not extend the delay
				if wait := g.guess(alice); wait != want {
					t.Fatalf("wait %s, want %s", wait, want)
				}
			}
			time.Sleep(want)
			if wait := g.guess(alice); wait > 0 {
				t.Fatalf("wait %s after the delay", wait)
			}
		}
		if wait := g.guess(bob); wait > 0 {
			t.Errorf("bob waits %s", wait)
		}
		g.right(alice)
		if wait := g.guess(alice); wait > 0 {
			t.Errorf("wait %s after the right password", wait)
		}
		for range freeGuesses {
			g.guess(bob)
		}
		time.Sleep(forgetGuesses + time.Second)
		for range freeGuesses {
			if wait := g.guess(bob); wait > 0 {
				t.Errorf("wait %s after all was forgotten", wait)
			}
		}
		for i := range maxGuessed + 100 {
			g.guess(guesser{"account", fmt.Sprint(i)})
		}
		if len(g.guessed) > maxGuessed {
			t.Errorf("%d guessers are remembered, want at most %d", len(g.guessed), maxGuessed)
		}
		for range freeGuessesNetwork + 1 {
			g.guess(guesser{"network", "192.0.2.1/32"})
		}
		if wait := g.guess(guesser{"network", "192.0.2.1/32"}); wait <= 0 {
			t.Error("a network guesses without delay")
		}
	})
}

// TestChecks checks that the number of simultaneous password checks is limited, and that people who
// signed in before do not wait for strangers.
func TestChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		var all []func()
		for range cap(g.checks) {
			done, ok := g.check(t.Context(), false, "")
			if !ok {
				t.Fatal("no room")
			}
			all = append(all, done)
		}
		if _, ok := g.check(t.Context(), false, ""); ok {
			t.Error("one more is checked")
		}
		if done, ok := g.check(t.Context(), true, ""); !ok {
			t.Error("a known browser waits for others")
		} else {
			done()
		}
		all[0]()
		if _, ok := g.check(t.Context(), false, ""); !ok {
			t.Error("no room after one was done")
		}
	})
}

// TestChecksWait checks that one network gets only a few of the waiting places, that waiting takes
// about a second, and that further requests are refused at once.
func TestChecksWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		const takes = 64 * time.Millisecond
		var most atomic.Int64
		var refused, checked atomic.Int64
		check := func(network string) {
			begun := time.Now()
			done, ok := g.check(t.Context(), false, network)
			if !ok {
				refused.Add(1)
				return
			}
			time.Sleep(takes)
			done()
			checked.Add(1)
			most.Store(max(most.Load(), int64(time.Since(begun))))
		}
		for range 48 {
			go check("192.0.2.0/24")
		}
		synctest.Wait()
		if n := refused.Load(); n != 44 {
			t.Errorf("of a network %d were refused, want 44", n)
		}
		go check("198.51.100.0/24")
		time.Sleep(5 * takes)
		synctest.Wait()
		if checked.Load() != 5 {
			t.Errorf("%d were checked, want 5: another network has room", checked.Load())
		}
		for range 1000 {
			go check("") // all requests through a proxy
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most := time.Duration(most.Load()); most > 17*takes {
			t.Errorf("somebody waited for %s", most)
		}
		if n := len(g.waiting); n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}

// TestUnknownAccount checks that the password check for an unknown account takes as long as for a
// known account, and always fails.
func TestUnknownAccount(t *testing.T) {
	var users []storage.Password
	for i, cost := range []int{10, 12} {
		h := must(bcrypt.GenerateFromPassword([]byte(password), cost))
		users = append(users, storage.Password{Email: fmt.Sprintf("u%d@demo.flor", i), Hash: h})
	}
	a := accounts{users: users, secret: []byte("s")}
	in := context.WithValue(t.Context(), signInKey{}, &signIn{})
	costs := map[int]bool{}
	for i := range 32 {
		name := fmt.Sprintf("nobody%d@demo.flor", i)
		p := must(a.GetPassword(in, name))
		costs[must(bcrypt.Cost(p.Hash))] = true
		if again := must(a.GetPassword(in, name)); string(again.Hash) != string(p.Hash) {
			t.Errorf("%s costs something else the second time", name)
		}
	}
	if !costs[10] || !costs[12] || len(costs) != 2 {
		t.Errorf("costs %v, want those of users", costs)
	}
	p := must(accounts{users: users[:1]}.GetPassword(in, "nobody"))
	if err := bcrypt.CompareHashAndPassword(p.Hash, []byte(password)); err != bcrypt.ErrMismatchedHashAndPassword {
		t.Errorf("somebody's password for nobody: %v", err)
	}
	if err := bcrypt.CompareHashAndPassword(must(accounts{}.GetPassword(in, "nobody")).Hash, nil); err != bcrypt.ErrMismatchedHashAndPassword {
		t.Errorf("without users: %v", err)
	}
	if string(users[0].Hash) != string(must(a.GetPassword(in, "U0@demo.flor")).Hash) {
		t.Error("a user's hash was changed")
	}
	if _, err := a.GetPassword(t.Context(), "nobody"); err != storage.ErrNotFound {
		t.Errorf("outside of a sign-in: %v", err)
	}
}

// TestNetworkGuesses checks that guesses at many accounts from one network are slowed down, except
// from the forwarder's network, which everybody shares.
func TestNetworkGuesses(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := f.p.newIssuer(ctx, must(compile(f.policy)), nil)
	if err != nil {
		t.Fatal(err)
	}
	in := &signIn{browser: rand.Text()}
	request := storage.AuthRequest{ID: "id", ConnectorID: dex.LocalConnector, Expiry: time.Now().Add(time.Hour)}
	if err := s.signIns.CreateAuthRequest(context.WithValue(ctx, signInKey{}, in), request); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, network, password string
		want                    int
	}{
		{"192.0.2.1:9", "192.0.2.1/32", "x", http.StatusTooManyRequests},
		{"127.0.0.1:9", "127.0.0.1/32", "x", http.StatusUnauthorized},
		{"127.0.0.1:9", "", strings.Repeat("x", longestPassword+1), http.StatusBadRequest}, // refused without a check
	} {
		for range freeGuessesNetwork {
			s.guard.guess(guesser{"network", c.network})
		}
		r := httptest.NewRequest(http.MethodPost, issuerURL+"/auth/local/login?state="+in.sealed+"&login=someone@demo.flor&password="+c.password, nil)
		r.RemoteAddr = c.from
		r.AddCookie(&http.Cookie{Name: s.signIns.name(browserCookie), Value: in.browser})
		w := httptest.NewRecorder()
		if s.login(w, r); w.Code != c.want {
			t.Errorf("from %s: status %d, want %d\n%s", c.from, w.Code, c.want, w.Body)
		}
	}
}
