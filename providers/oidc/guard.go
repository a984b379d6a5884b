package oidc

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
)

// How often a password may be guessed: so often at once, and then after a delay that
// doubles up to the longest. What was wrong is forgotten after a while without a guess.
const (
	freeGuesses        = 5
	freeGuessesNetwork = 50
	longestDelay       = time.Minute
	forgetGuesses      = 15 * time.Minute
	maxGuessed         = 10_000 // accounts, browsers and networks that are remembered
	checkPatience      = 5 * time.Second

	// maxWaiting is how many checks are under way or wait, for each processor that checks: at 64
	// ms each, nobody waits for longer than a second. maxWaitingNetwork is that of a network.
	maxWaiting        = 16
	maxWaitingNetwork = 4
)

// guesser is what guesses are counted by: an account, for browsers that are not known to
// be its own; a browser that is; or a network. So nobody can lock somebody out of a
// browser that signed in before.
type guesser struct {
	sort, name string
}

// guesses are those of one guesser.
type guesses struct {
	n     int
	last  time.Time
	until time.Time // none before
}

// guard slows the guessing of passwords down, and bounds how many are checked at once:
// each costs a tenth of a second or more of the machine that issues certificates.
type guard struct {
	mu      sync.Mutex
	guessed map[guesser]*guesses

	// Those from known browsers do not wait for others.
	checks, knownChecks chan struct{}

	// Who waits, and is checked, of those from other browsers.
	waiting chan struct{}
	from    *conns.PerKey[string] // of each network
}

// processors are those of this machine, before server.TuneRuntime.
var processors = runtime.GOMAXPROCS(0)

func newGuard() *guard {
	n := max(processors/2, 1)
	return &guard{
		guessed: map[guesser]*guesses{}, checks: make(chan struct{}, n), knownChecks: make(chan struct{}, n),
		waiting: make(chan struct{}, n*maxWaiting), from: conns.NewPerKey[string](maxWaitingNetwork),
	}
}

// guess counts a guess as wrong, which right takes back, unless it comes too early: then
// it returns how long that is. A guess that comes too early costs nothing more.
func (g *guard) guess(by ...guesser) (wait time.Duration) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range by {
		if have := g.guessed[k]; have != nil {
			wait = max(wait, have.until.Sub(now))
		}
	}
	if wait > 0 {
		return wait
	}
	for _, k := range by {
		have := g.guessed[k]
		if have == nil || now.Sub(have.last) > forgetGuesses {
			have = &guesses{}
			g.remember(k, have)
		}
		have.n++
		have.last = now
		free := freeGuesses
		if k.sort == "network" {
			free = freeGuessesNetwork
		}
		if over := have.n - free; over >= 0 {
			have.until = now.Add(min(time.Second<<min(over, 30), longestDelay))
		}
	}
	return 0
}

// remember makes room by forgetting who has not guessed for the longest. g.mu is held.
func (g *guard) remember(k guesser, v *guesses) {
	if _, ok := g.guessed[k]; !ok && len(g.guessed) >= maxGuessed {
		var oldest guesser
		var at time.Time
		for k, v := range g.guessed {
			if at.IsZero() || v.last.Before(at) {
				oldest, at = k, v.last
			}
		}
		delete(g.guessed, oldest)
	}
	g.guessed[k] = v
}

// undo takes back one guess, which was never checked.
func (g *guard) undo(by ...guesser) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range by {
		if have := g.guessed[k]; have != nil {
			have.n, have.until = max(have.n-1, 0), time.Time{}
		}
	}
}

// right forgets the guesses of one who has the right password.
func (g *guard) right(by guesser) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.guessed, by)
}

// check waits until a password may be checked. It is false when too many wait, whether or not
// there is such an account: what a check takes tells nothing. A network is that of a browser that
// is not known, empty where everybody comes from it.
func (g *guard) check(ctx context.Context, known bool, network string) (done func(), ok bool) {
	if known {
		return wait(ctx, g.knownChecks)
	}
	leave := func() {}
	if network != "" {
		if leave, ok = g.from.Acquire(network); !ok {
			return nil, false
		}
	}
	select {
	case g.waiting <- struct{}{}:
	default:
		leave()
		return nil, false
	}
	checked, ok := wait(ctx, g.checks)
	end := func() {
		<-g.waiting
		leave()
	}
	if !ok {
		end()
		return nil, false
	}
	return func() { checked(); end() }, true
}

// wait waits for one of the checks.
func wait(ctx context.Context, checks chan struct{}) (done func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	select {
	case checks <- struct{}{}:
		return func() { <-checks }, true
	case <-ctx.Done():
		return nil, false
	}
}
