// Package confirm changes the documents of a host for a limited time (commit-confirm). If the
// operator does not confirm the change before its deadline, the host restores the old documents
// automatically. This protects an operator from losing access to the host. The package does the
// same for a NixOS system or a bundle that another program installs.
//
// The change's ID, its deadline, and the generation to restore are written to disk before anything
// changes. A separate process (Supervise) enforces the deadline. It needs neither the network nor
// any other process. To confirm a change, an operator names the change in a login that began after
// the change. Such a login proves that the host can still be reached.
//
// The files in the state directory show the state of a change:
//
//	pending:    change.json
//	confirmed:  change.json is gone
//	undone:     change.json was renamed to undone.json
package confirm

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/florete/florete/activation/documents"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

// longest is the maximum time for which a change may wait for its confirmation. An operator who
// asks for more than a day is not watching the host.
const longest = 24 * time.Hour

// Host is the host on which documents are changed.
type Host struct {
	State   hostdir.Layout
	HostKey string // file of the SSH host key
	TPM     string // device of the TPM that keeps the host's key, see fetch.Host

	// Dial connects to providers. If it is nil, TCP is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Arm starts Supervise in another process, and returns when that process is running.
	Arm func(ctx context.Context) error

	Step func(name string) // see delivery.Dir; only used in tests
}

// Fetched contains the newest documents of a provider, verified but not yet in force, and the
// documents that they would replace. Fetch returns it, and Begin puts it in force.
type Fetched struct {
	Provider string
	documents.Offer
	store *documents.Store
}

// Before returns the documents that were in force before the change.
func (f Fetched) Before() documents.Set { return f.store.Set() }

// Fetch requests the newest documents from the host's providers, in the order of the manifest, and
// verifies them. It does not put them in force. If an earlier change is still pending, Fetch
// returns an error that describes that change.
func (h Host) Fetch(ctx context.Context) (Fetched, error) {
	store, _, err := documents.Open(h.State, "", h.Step)
	if err != nil {
		return Fetched{}, err
	}
	if err := store.NoneIsPending(); err != nil {
		return Fetched{}, err
	}
	provider, artifact, err := h.request(ctx, store.Set())
	if err != nil {
		return Fetched{}, err
	}
	offer, e := store.Verify(artifact)
	if e != nil {
		return Fetched{}, fmt.Errorf("provider %s: %w", provider, e)
	}
	return Fetched{provider, offer, store}, nil
}

// request requests documents from the host's providers, one after the other, until one of them
// answers. Each request uses a new connection.
func (h Host) request(ctx context.Context, set documents.Set) (provider string, a hostapi.Artifact, err error) {
	m, host := set.Manifest, h.under(set)
	n := m.Documents()
	if n == nil {
		return "", a, fmt.Errorf("manifest of %s: no need of kind %s, want documents that come over the network: deploy = \"network\" in its topology", m.Host, document.KindConfig)
	}
	for _, provider := range n.Providers {
		pass := host.Pass()
		a, failed := pass.Artifact(ctx, fetch.Attempt{Need: *n, Provider: provider})
		pass.Leave()
		if failed == nil {
			return provider, a, nil
		}
		err = fmt.Errorf("documents from provider %s: %w", provider, failed.Error)
	}
	return "", a, err
}

// under returns this host as a set of documents describes it.
func (h Host) under(set documents.Set) *fetch.Host {
	return &fetch.Host{
		Layout: h.State, Manifest: set.Manifest, Serial: set.Document.Envelope.Serial, Tag: set.Tag(), Roots: set.Roots,
		HostKey: h.HostKey, TPM: h.TPM, Dial: h.Dial,
	}
}

// Begin puts a change in force for a limited time and returns the pending change. If the change is
// not confirmed within the timeout, the host restores the old documents. The timeout must be
// between a second and a day.
func (h Host) Begin(ctx context.Context, c Fetched, timeout time.Duration) (*hostdir.Change, error) {
	if timeout < time.Second || timeout > longest {
		return nil, fmt.Errorf("--confirm-timeout %s: want between 1s and %s", timeout, longest)
	}
	now, err := documents.ReadClock()
	if err != nil {
		return nil, err
	}
	return c.store.Begin(ctx, c.Offer, now.Change(timeout), h.Arm)
}

// Healthy returns nil if the host works with the changed documents: every need is fulfilled, and a
// provider that the new documents name answers over a new connection. Otherwise the error says what
// does not work yet.
func (h Host) Healthy(ctx context.Context, c Fetched) error {
	host := h.under(c.Set)
	for _, n := range c.Set.Manifest.Needs {
		if n.Kind == document.KindConfig {
			continue // newer documents wait for the change
		}
		s, err := h.State.NeedState(n.ID)
		if err != nil {
			return err
		}
		if s.State != hostdir.NeedFulfilled || !s.Usable(needstate.Digest(n), time.Now()) || n.Kind == document.KindCert && !host.Trusts(n) {
			return fmt.Errorf("need %s is not fulfilled by these documents yet", n.ID)
		}
	}
	_, _, err := h.request(ctx, c.Set)
	return err
}

// Confirm makes the pending change with this ID permanent. The login session of the caller must
// have begun after the change, because this proves that the host can still be reached. If the
// session is older, or the deadline has passed, Confirm returns an error.
func Confirm(l hostdir.Layout, id string) error {
	return confirm(l, id, nil, func(c hostdir.Change) error {
		began, scope, ok, err := kernel.began()
		if err != nil || !ok || began >= documents.Begun(c) {
			return err
		}
		return fmt.Errorf("change %s: login %s began before the change, want one that came through after it: connect anew, then flor sync --confirm %s", c.ID, scope, c.ID)
	})
}

// ConfirmHealthy makes the pending change with this ID permanent. Unlike Confirm, it does not check
// when the caller's login session began. The caller must have verified with Healthy that the host
// still reaches its providers.
func (h Host) ConfirmHealthy(id string) error {
	return confirm(h.State, id, h.Step, func(hostdir.Change) error { return nil })
}

func confirm(l hostdir.Layout, id string, step func(string), check func(hostdir.Change) error) error {
	return documents.Confirm(l, id, step, func(c hostdir.Change) error {
		now, err := documents.ReadClock()
		if err != nil {
			return err
		}
		if now.Left(c) <= 0 {
			return fmt.Errorf("change %s: its time is over and it goes back: flor sync", c.ID)
		}
		return check(c)
	})
}
