package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/printable"
)

// How long a kind that failed waits before it runs again.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// failing are the kinds that do not run now, and why. Requests for them are transient;
// the other kinds are served.
type failing struct {
	log    *slog.Logger
	status func(string) // nil before the server serves

	mu  sync.Mutex
	why map[failure]error
}

// failure is one of a kind's: of its work, or of what the policy says about it.
type failure struct {
	kind   string
	policy bool
}

// set notes what fails, nil when it does no longer, and reports what changed.
func (f *failing) set(of failure, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.why[of]
	switch {
	case err == nil && was == nil, err != nil && was != nil && err.Error() == was.Error():
		return
	case err == nil:
		delete(f.why, of)
		f.log.Info("kind runs again", "kind", of.kind)
	default:
		f.why[of] = err
		f.log.Error("kind does not run, and is tried again; the others are served", "kind", of.kind, "error", err)
	}
	if f.status != nil {
		f.status(f.summary())
	}
}

// report begins to report what fails.
func (f *failing) report(status func(string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = status
	f.status(f.summary())
}

func (f *failing) has(of failure) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why[of] != nil
}

// summary is what the service manager shows.
func (f *failing) summary() string {
	if len(f.why) == 0 {
		return "serving"
	}
	var all []string
	for of, err := range f.why {
		all = append(all, printable.Text(fmt.Sprintf("kind %q does not run: %v", of.kind, err)))
	}
	slices.Sort(all)
	return "serving, but " + strings.Join(all, "; ")
}

// refuse is the answer to a request for a kind that does not run.
func (f *failing) refuse(kind string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.why[failure{kind, true}] == nil && f.why[failure{kind, false}] == nil {
		return nil
	}
	return api.Errorf(api.Transient, api.CodeUnavailable, "kind %q does not run at this provider now: its log says why", kind).After(10 * time.Second)
}

// run keeps a kind running until ctx ends.
func (f *failing) run(ctx context.Context, r Runner) {
	wait, of := firstRetry, failure{kind: r.Name()}
	for {
		err := r.Run(ctx, func() {
			wait = firstRetry
			f.set(of, nil)
		})
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it ended by itself")
		}
		f.set(of, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, lastRetry)
	}
}

// missing is a kind that the policy has and this provider has no settings for.
type missing string

func (m missing) Name() string { return string(m) }

func (m missing) Check(p florete.Policy) error {
	return fmt.Errorf("policy of %s: runs kind %q, for which this provider has no settings: add %q to its settings and restart it", p.Host, m.Name(), m.Name())
}

func (m missing) Answer(_ context.Context, c Call) (Decision, error) {
	return Decision{}, m.Check(c.Policy)
}

func (m missing) Read(_ context.Context, c Call) (api.Artifact, error) {
	return api.Artifact{}, m.Check(c.Policy)
}
