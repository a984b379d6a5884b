package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/store"
)

// ListSource tells a process where to read the newest revocation list: a key in a store, at which
// operators change the list. A process without a ListSource reads revocation lists only from files.
type ListSource struct {
	Store store.Reading
	Tree  string // tree of Store, as the process's own store names it; empty if they are the same
	Key   string

	// Decode decodes the signed revocation list from the value stored under Key.
	Decode func(value []byte) (trust.SignedRevocations, error)

	// Shared reports whether several hosts keep the store. Such a store answers only if a majority
	// of these hosts can be reached.
	Shared bool

	// Taken is called with each revocation list that is read. If there is no list, it is called
	// with nil. Taken may be nil.
	Taken func(*trust.Revocations)
}

// newestList is the revocation list of a ListSource that is in force, with the revision of its key.
// Each grant is committed on condition that the key still has this revision. A process that was
// stopped or cut off can therefore grant nothing under a list that was replaced.
type newestList struct {
	source   *ListSource // nil for none
	policies *Policies

	mu       sync.Mutex
	known    bool
	revision int64
	err      error // why the list at revision is not in force; nil where it is
}

// Fresh returns conditions that fail if the process does not use the newest revocation list.
// Include them in the transaction that answers a request, and call Fresh before using the list. If
// the newest list cannot be read, Fresh returns an error.
func (p *Policies) Fresh(ctx context.Context) ([]store.Cond, error) { return p.newest.condition(ctx) }

// Refresh reads the newest revocation list from the store and starts to use it. Call it after the
// conditions of Fresh made a transaction fail.
func (p *Policies) Refresh(ctx context.Context) error { return p.newest.read(ctx) }

func (l *newestList) condition(ctx context.Context) ([]store.Cond, error) {
	if l.source == nil {
		return nil, nil
	}
	l.mu.Lock()
	known, revision, err := l.known, l.revision, l.err
	l.mu.Unlock()
	if !known || err != nil {
		if err := l.read(ctx); err != nil {
			return nil, err
		}
		l.mu.Lock()
		revision = l.revision
		l.mu.Unlock()
	}
	return []store.Cond{{Tree: l.source.Tree, Key: l.source.Key, Modified: revision}}, nil
}

// read reads the newest revocation list from the store and puts it in force.
func (l *newestList) read(ctx context.Context) error {
	if l.source == nil {
		return nil
	}
	e, err := store.Find(ctx, l.source.Store, l.source.Key)
	if err != nil {
		return fmt.Errorf("revocation list: %w", err)
	}
	return l.take(e)
}

// take puts a revocation list in force, and then makes its revision the condition of grants. If an
// older list arrives late, it does not come into force. Its revision then makes commits fail until
// the newest list is read.
func (l *newestList) take(e store.Entry) error {
	var list *trust.Revocations
	var err error
	if e.Modified != 0 {
		list, err = l.open(e.Value)
	}
	if err == nil {
		l.policies.supply(list)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.revision, l.err = true, e.Modified, err
	if err == nil && l.source.Taken != nil {
		l.source.Taken(list)
	}
	return err
}

func (l *newestList) open(value []byte) (*trust.Revocations, error) {
	s, err := l.source.Decode(value)
	if err != nil {
		return nil, fmt.Errorf("revocation list: %w", err)
	}
	list, err := l.policies.verifiedList(s)
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeListBehind, "the newest revocation list cannot be used here: %v: deploy this provider", err).After(time.Minute)
	}
	return list, nil
}

// verifiedList decodes a revocation list. A key of the policy in force must have signed the list.
func (p *Policies) verifiedList(s trust.SignedRevocations) (*trust.Revocations, error) {
	list, err := s.Open()
	if err == nil {
		policy := p.Current()
		err = s.Verify(list, policy.Cluster, policy.Trust.Signers())
	}
	return list, err
}

// follow puts each new revocation list in force as soon as it is in the store, until ctx ends.
func (l *newestList) follow(ctx context.Context) {
	if l.source == nil {
		return
	}
	journal.Every(ctx, time.Second, l.policies.log, l.changes, "the newest revocation list is not taken from the store")
}

// changes puts the current revocation list and every change of it in force, until the store fails.
func (l *newestList) changes(ctx context.Context) error {
	entries, at, err := l.source.Store.List(ctx, l.source.Key)
	if err != nil {
		return err
	}
	var now store.Entry
	for _, e := range entries {
		if e.Key == l.source.Key {
			now = e
		}
	}
	l.logged(l.take(now))
	for e, err := range l.source.Store.Watch(ctx, l.source.Key, at) {
		if err != nil {
			return err
		}
		if e.Key != l.source.Key {
			continue
		}
		if e.Deleted {
			e.Entry = store.Entry{}
		}
		l.logged(l.take(e.Entry))
	}
	return nil
}

// logged logs why nothing is granted, if a revocation list cannot be used.
func (l *newestList) logged(err error) {
	if err != nil {
		l.policies.log.Error("nothing is granted until the newest revocation list can be used", "error", err)
	}
}

// listFile is a file with the revocation list. Another process of this host replaces the file.
type listFile struct {
	path   string
	signed bool // its signature is verified here, and not by its writer alone
	read   os.FileInfo
	unread journal.Once
}

// AlsoRead adds a file from which the revocation list is read. The process of kind "config" writes
// that file for the other processes on its host. Call AlsoRead before using the Policies.
func (p *Policies) AlsoRead(file string) {
	p.lists = append(p.lists, &listFile{path: file, signed: true})
	p.pollLists()
}

// pollLists puts a revocation list in force if its file has changed. It reports whether there was
// such a list. Because each decision calls pollLists before and after, it looks only at the inode
// and the time of the file.
func (p *Policies) pollLists() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.now.Load().roots.Revocations()
	for _, f := range p.lists {
		info, err := os.Stat(f.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && unchanged(info, f.read) {
			continue
		}
		var list *trust.Revocations
		if err == nil {
			list, err = trust.ReadRevocations(f.path, was)
		}
		if err == nil && f.signed && list != nil {
			_, err = p.verifiedList(list.AsSigned())
		}
		if f.unread.News(err) {
			p.log.Error("the revocation list cannot be read, the old one stays in force", "error", err)
		}
		if err != nil {
			continue
		}
		f.read = info
		p.adopt(list)
	}
	return p.now.Load().roots.Revocations() != was
}

// unchanged reports whether a file is still the same, with the same time and size. The argument
// before describes the file at an earlier time. If it is nil, the result is false.
func unchanged(info, before fs.FileInfo) bool {
	return before != nil && os.SameFile(info, before) && info.ModTime().Equal(before.ModTime()) && info.Size() == before.Size()
}

// supply puts a revocation list in force, unless the list in force is at least as new.
func (p *Policies) supply(list *trust.Revocations) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adopt(list)
}

// adopt puts a revocation list in force, as supply does. The caller must hold p.mu.
func (p *Policies) adopt(list *trust.Revocations) {
	old := p.now.Load()
	if !list.Newer(old.roots.Revocations()) {
		return
	}
	f := *old
	f.roots = f.roots.With(list)
	p.now.Store(&f)
	p.log.Info("revocation list in force", "number", list.Number)
}
