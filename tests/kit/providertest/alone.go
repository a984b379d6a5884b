package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
)

// Alone is a test environment for one kind of need, without a server process or a real clock. A
// test requests the need that Grant permits, and moves the time Now forward.
type Alone[P any] struct {
	T    *testing.T
	Kind interface {
		Name() string
		Compile(p document.Policy) (P, error)
		Answer(ctx context.Context, p P, c server.Call) (server.Decision, error)
		Sweep(ctx context.Context, now time.Time, p P) error
	}
	Settings any              // settings of the kind in the policy
	Grant    document.Grant   // grant of the need; the policy does not include it if its Kind is empty
	Others   []document.Grant // further grants, included along with Grant
	Store    store.Store
	Now      time.Time
}

// NewStore gives the kind an empty state store and returns the store.
func (a *Alone[P]) NewStore() store.Store {
	a.T.Helper()
	db, err := sqlite.Open(filepath.Join(a.T.TempDir(), "state.db"), sqlite.Options{})
	if err != nil {
		a.T.Fatal(err)
	}
	a.T.Cleanup(func() { db.Close() })
	a.Store = db
	return db
}

// Compiled returns the policy that consists of Settings and the grants, after the kind's method
// Compile.
func (a *Alone[P]) Compiled() P {
	a.T.Helper()
	p := document.Policy{Host: "forge", TrustDomain: kit.Domain, Kinds: map[string]json.RawMessage{a.Kind.Name(): kit.JSON(a.Settings)}}
	if a.Grant.Kind != "" {
		p.Grants = append([]document.Grant{a.Grant}, a.Others...)
	}
	compiled, err := a.Kind.Compile(p)
	if err != nil {
		a.T.Fatal(err)
	}
	return compiled
}

// Decide returns the decision of the kind about a request for the need. The changes in the decision
// are not committed.
func (a *Alone[P]) Decide() (server.Decision, error) {
	a.T.Helper()
	g := a.Grant
	return a.Kind.Answer(a.T.Context(), a.Compiled(), server.Call{
		Caller: g.Caller, Grant: g, Now: a.Now, Request: hostapi.Request{Need: g.Need, Generation: g.Generation, Body: g.Request},
	})
}

// Reads requests the need, commits the decision, and returns the values in the answer. Like a host,
// it requests the need again after a transient refusal. If the request is refused for good, the test
// fails.
func (a *Alone[P]) Reads() map[string]string {
	a.T.Helper()
	var d server.Decision
	a.again(func() (err error) {
		d, err = a.Decide()
		return err
	})
	if _, err := a.Store.Commit(a.T.Context(), store.Txn{If: d.If, Then: d.Then}); err != nil {
		a.T.Fatal(err)
	}
	return d.Answer.Values
}

// again calls try until it returns nil. An error that is not transient fails the test.
func (a *Alone[P]) again(try func() error) {
	a.T.Helper()
	kit.Succeeds(a.T, "an answer", func() error {
		err := try()
		if err != nil && hostapi.AsError(err).Kind != hostapi.Transient {
			a.T.Fatal(err)
		}
		return err
	})
}

// Refused requests the need and returns the message of the refusal. The test fails unless the
// request is refused with the transient error hostapi.CodeUnavailable.
func (a *Alone[P]) Refused() string {
	a.T.Helper()
	_, err := a.Decide()
	var e *hostapi.Error
	if !errors.As(err, &e) || e.Kind != hostapi.Transient || e.Code != hostapi.CodeUnavailable.Name {
		a.T.Fatalf("%v, want a transient refusal", err)
	}
	return e.Message
}

// Passes moves the time Now forward by the duration d, and then calls the kind's method Sweep once,
// or again after a transient error.
func (a *Alone[P]) Passes(d time.Duration) {
	a.T.Helper()
	a.Now = a.Now.Add(d)
	a.again(func() error { return a.Kind.Sweep(a.T.Context(), a.Now, a.Compiled()) })
}
