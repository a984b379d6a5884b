package oidc

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
)

// These constants limit guesses of passwords. After some free guesses, each wrong guess doubles the
// delay before the next guess, up to a maximum. Wrong guesses are forgotten after a time without a
// guess.
const (
	freeGuesses        = 5
	freeGuessesNetwork = 50
	longestDelay       = time.Minute
	forgetGuesses      = 15 * time.Minute
	maxGuessed         = 10_000 // accounts, browsers and networks that are remembered
	checkPatience      = 5 * time.Second

	// maxWaiting is the number of checks in progress or waiting for each checking processor. A
	// check takes 64 ms, so nobody waits for longer than a second. maxWaitingNetwork is the bound
	// for one network.
	maxWaiting        = 16
	maxWaitingNetwork = 4
)

// guesser is the subject for which guesses are counted. It is an account, in browsers in which the
// account has not signed in before; a browser in which the account has signed in; or a network.
// Therefore nobody can lock a person out of a browser in which this person has signed in before.
type guesser struct {
	sort, name string
}

// guesses counts the guesses of one guesser.
type guesses struct {
	n     int
	last  time.Time
	until time.Time // none before
}

// guard slows down the guessing of passwords, and limits how many passwords are checked at once. A
// check takes a tenth of a second of processor time or more, on the machine that issues
// certificates.
type guard struct {
	mu      sync.Mutex
	guessed map[guesser]*guesses

	// knownChecks is for known browsers, which do not wait for others.
	checks, knownChecks chan struct{}

	// waiting bounds the checks for unknown browsers that wait or are in progress.
	waiting chan struct{}
	from    *conns.PerKey[string] // of each network
}

// processors is the number of processors of this machine. It is read before server.TuneRuntime
// changes GOMAXPROCS.
var processors = runtime.GOMAXPROCS(0)

func newGuard() *guard {
	n := max(processors/2, 1)
	return &guard{
		guessed: map[guesser]*guesses{}, checks: make(chan struct{}, n), knownChecks: make(chan struct{}, n),
		waiting: make(chan struct{}, n*maxWaiting), from: conns.NewPerKey[string](maxWaitingNetwork),
	}
}

// guess counts a guess as wrong in advance. The method right takes the guess back. If the guess
// comes too early, guess counts nothing and returns how long to wait.
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

// remember adds the guesses of a guesser. If there are too many guessers, it forgets the one whose
// last guess is the oldest. The caller must hold g.mu.
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

// undo takes back one guess that was never checked.
func (g *guard) undo(by ...guesser) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range by {
		if have := g.guessed[k]; have != nil {
			have.n, have.until = max(have.n-1, 0), time.Time{}
		}
	}
}

// right forgets the guesses of a guesser that presented the right password.
func (g *guard) right(by guesser) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.guessed, by)
}

// check waits until a password may be checked. It returns false if too many checks wait. The result
// is the same whether or not the account exists, so that it reveals nothing. The argument network
// is the network of an unknown browser. It is empty if all connections come from the same network.
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

// wait waits until fewer checks run than are allowed.
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
