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

// Table contains the needs of the manifest in force with their states. It must be used by one
// goroutine.
type Table struct {
	Host     *fetch.Host // host under the documents in force
	Manifest string      // digest of the manifest
	Needs    []*Need     // in the order of the manifest

	Backoff Backoff
	Refetch string          // see activation.Config; empty for none
	Once    bool            // each need is requested once
	Tried   map[string]bool // with Once: IDs of needs that were requested

	Step    func(name string)
	Report  func(event.Event)
	Changed func() // called when the state of a need has changed between two attempts
}

// Start runs work in a goroutine. The function that work returns is called on the goroutine that
// owns the Table.
type Start func(work func(context.Context) (note func()))

// Add adds a need with its state on disk.
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

// Disk reports an error of the disk.
func (t *Table) Disk(need string, err error) {
	t.Report(event.Event{Event: event.Disk, Need: need, Message: err.Error()})
}

// Summary returns the status of the needs.
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

// Waits reports whether activation will still change a need by itself.
func (t *Table) Waits() bool { return slices.ContainsFunc(t.Summary(), event.Need.Waits) }

// Node returns the need for the SVID of the node itself, nil for none.
func (t *Table) Node() *Need {
	i := slices.IndexFunc(t.Needs, func(n *Need) bool { return t.Host.IsNode(n.Need) })
	if i < 0 {
		return nil
	}
	return t.Needs[i]
}

// Requested returns an identity of the newest request to fetch a need again, or to rotate its
// secret, by the name of the request's file; zero for none. It may only be compared for equality
// with the identity that the last attempt served. A request that arrives during an attempt is then
// not lost, whatever the clocks say.
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

// blockers returns the needs for which n has to wait.
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

// First returns the earliest of some times. A zero time means none.
func First(times ...time.Time) (first time.Time) {
	for _, at := range times {
		if first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// Rewind moves times of waits when the clock was set back. Zero times stay zero.
func Rewind(by time.Duration, times ...*time.Time) {
	for _, at := range times {
		if !at.IsZero() {
			*at = at.Add(-by)
		}
	}
}
