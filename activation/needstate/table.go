package needstate

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/document"
)

// Table is the needs of the manifest in force, with how each stands. It belongs to one goroutine,
// and so does all that is in it.
type Table struct {
	Host     *fetch.Host // under the documents in force
	Manifest string      // digest of the manifest
	Needs    []*Need     // in the manifest's order

	Backoff Backoff
	Refetch string          // see activation.Config; empty for none
	Once    bool            // each need is requested once
	Tried   map[string]bool // with Once: by name, which were

	Step    func(name string)
	Report  func(event.Event)
	Changed func() // how a need stands has changed between two attempts
}

// Start does work beside the goroutine that owns a Table. What work returns is called on that
// goroutine.
type Start func(work func(context.Context) (note func()))

// Add adds a need, as it was left on disk.
func (t *Table) Add(n document.Need) *Need {
	l := &Need{Need: n, Digest: Digest(n), Dir: delivery.Dir{Path: t.Host.Layout.Need(n.ID), Step: t.Step}, table: t}
	t.Needs = append(t.Needs, l)
	if err := l.Dir.Clean(); err != nil {
		t.Disk(n.ID, err)
	}
	var err error
	if l.State.NeedState, err = t.Host.Layout.NeedState(n.ID); err != nil {
		t.Report(event.Event{Event: event.Disk, Need: n.ID, Message: err.Error() + ": begins anew"})
	}
	l.Foreign = n.Kind == document.KindCert && !t.Host.Trusts(n)
	if t.Host.Answered(n.ID, l.State.Answers) {
		l.Forget()
	}
	return l
}

// Disk reports what the disk has wrong.
func (t *Table) Disk(need string, err error) {
	t.Report(event.Event{Event: event.Disk, Need: need, Message: err.Error()})
}

// Summary returns how the needs stand.
func (t *Table) Summary() []event.Need {
	all := slices.Grow([]event.Need(nil), len(t.Needs))
	for _, n := range t.Needs {
		all = append(all, event.Need{
			ID: n.ID, Kind: n.Kind, State: n.State.State, Attempts: n.State.Attempts, Total: n.State.Total,
			Provider: n.State.Provider, Error: n.State.Error, Next: n.State.Next,
		})
	}
	return all
}

// Waits reports whether activation itself will still change a need.
func (t *Table) Waits() bool { return slices.ContainsFunc(t.Summary(), event.Need.Waits) }

// Node returns the need for the SVID of the node itself; nil for none.
func (t *Table) Node() *Need {
	i := slices.IndexFunc(t.Needs, func(n *Need) bool { return t.Host.IsNode(n.Need) })
	if i < 0 {
		return nil
	}
	return t.Needs[i]
}

// Requested identifies the newest request to fetch a need again, or to rotate its secret, by
// the name of its file; zero for none. It is compared for equality alone, with the one that
// the last attempt serves: no order of clocks can lose a request that came while that
// attempt was under way.
func (t *Table) Requested(name string) int64 {
	if t.Refetch == "" {
		return 0
	}
	// Another account's directory: a link there is no request.
	fi, err := os.Lstat(filepath.Join(t.Refetch, name))
	if err != nil || !fi.Mode().IsRegular() {
		return 0
	}
	return fi.ModTime().UnixNano()
}

// blockers are the needs that n has to wait for.
func (t *Table) blockers(n *Need, now time.Time) (ids []string) {
	for _, id := range n.DependsOn {
		for _, other := range t.Needs {
			if other.ID == id && (other.Foreign || !other.State.Usable(other.Digest, now)) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// First returns the first of some times; zero is none.
func First(times ...time.Time) (first time.Time) {
	for _, at := range times {
		if first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// Rewind moves times by which something waits, zero for none, when the clock was set back.
func Rewind(by time.Duration, times ...*time.Time) {
	for _, at := range times {
		if !at.IsZero() {
			*at = at.Add(-by)
		}
	}
}
