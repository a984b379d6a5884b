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

// Table contains the needs of the manifest in force and their states. It must be used by only one
// goroutine, its owner.
type Table struct {
	Host     *fetch.Host // this host, as the documents in force describe it
	Manifest string      // digest of the manifest
	Needs    []*Need     // in the order of the manifest

	Backoff Backoff
	Refetch string          // directory of requests by people, see activation.Config; empty if there is none
	Once    bool            // request each need only once
	Tried   map[string]bool // with Once: IDs of needs that were requested

	Step    func(name string)
	Report  func(event.Event)
	Changed func() // called when a need changes its state without an attempt
}

// Start runs slow work in a new goroutine. The work returns a function that records its results.
// The goroutine that owns the Table later calls this function.
type Start func(work func(context.Context) (note func()))

// Add adds a need of the manifest to the table, and reads its recorded state from disk. If the
// state cannot be read, Add reports an event and begins with an empty state.
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

// Disk reports that the state directory could not be read or written.
func (t *Table) Disk(need string, err error) {
	t.Report(event.Event{Event: event.Disk, Need: need, Message: err.Error()})
}

// Summary returns the status of all needs in the table.
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

// Waits reports whether activation is still working on any need, so that the status of the host may
// improve without any action of an operator.
func (t *Table) Waits() bool { return slices.ContainsFunc(t.Summary(), event.Need.Waits) }

// Node returns the need for the node's own SVID, or nil if the manifest has none.
func (t *Table) Node() *Need {
	i := slices.IndexFunc(t.Needs, func(n *Need) bool { return t.Host.IsNode(n.Need) })
	if i < 0 {
		return nil
	}
	return t.Needs[i]
}

// Requested returns a number that identifies the newest request of a person, who requests something
// by touching the file with this name. It returns zero if there is no such file. A caller compares
// the number only for equality with that of the last request that it has served. A request that
// arrives during an attempt is thus not lost, even if the clock is wrong.
func (t *Table) Requested(name string) int64 {
	if t.Refetch == "" {
		return 0
	}
	// The directory belongs to another account, so symbolic links are ignored.
	fi, err := os.Lstat(filepath.Join(t.Refetch, name))
	if err != nil || !fi.Mode().IsRegular() {
		return 0
	}
	return fi.ModTime().UnixNano()
}

// blockers returns the IDs of the needs that must be fulfilled before n can be requested.
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

// First returns the earliest of the given times. Zero times are ignored.
func First(times ...time.Time) (first time.Time) {
	for _, at := range times {
		if first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// Rewind moves the given times to an earlier time after the wall clock was set back by the given
// duration, so that waits do not become longer. Zero times stay zero.
func Rewind(by time.Duration, times ...*time.Time) {
	for _, at := range times {
		if !at.IsZero() {
			*at = at.Add(-by)
		}
	}
}
