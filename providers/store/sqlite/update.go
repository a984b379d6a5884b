package sqlite

import (
	"context"
	"errors"
)

// most is the largest number of changes that share a transaction of SQLite. The limit ensures that
// no change waits for long.
const most = 64

// job is a change that waits for the writer.
type job struct {
	ctx      context.Context
	change   func(*tx) error
	revision int64 // then
	err      error
	done     chan struct{}
}

// update runs a function in a write transaction and returns the resulting revision. Changes that
// arrive while another transaction is flushed share the next one, which the caller of the first
// change makes. A change that fails does not affect the others.
func (s *Store) update(ctx context.Context, f func(*tx) error) (int64, error) {
	j := &job{ctx: ctx, change: f, done: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, j)
	s.mu.Unlock()
	for {
		select {
		case <-j.done:
			return j.revision, s.damaged(moved(j.err))
		case s.writer <- struct{}{}:
			s.group()
			<-s.writer
		}
	}
}

// group makes the changes that wait. No other goroutine writes meanwhile.
func (s *Store) group() {
	s.mu.Lock()
	n := min(len(s.waiting), most)
	jobs := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	closed := s.closed
	s.mu.Unlock()
	if n == 0 {
		return
	}
	changed, err := false, errClosed
	if !closed {
		changed, err = s.transact(jobs)
	}
	if err != nil {
		for _, j := range jobs {
			j.revision, j.err = 0, err
		}
	} else if changed {
		s.announce()
	}
	for _, j := range jobs {
		close(j.done)
	}
}

// transact makes several changes in one transaction. Each change has its own revisions. The
// returned error applies to all changes: a change that is refused has written nothing yet, so a
// later failure is a failure of the file. Changes are not interrupted, because that would end the
// other changes too.
func (s *Store) transact(jobs []*job) (changed bool, err error) {
	if len(jobs) == 1 && jobs[0].ctx.Err() != nil {
		return false, jobs[0].ctx.Err()
	}
	if err := s.Gone(); err != nil {
		return false, err
	}
	t := &tx{store: s}
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.exec("ROLLBACK"))
		}
	}()
	if err := t.start(); err != nil {
		return false, err
	}
	for _, j := range jobs {
		at := t.revision
		if j.err = j.ctx.Err(); j.err != nil {
			continue
		}
		if j.err = j.change(t); j.err != nil && t.revision != at {
			return false, j.err
		}
		j.revision = t.revision
	}
	if t.revision != t.began {
		if err := errors.Join(t.record(t.revision-s.keep), t.remove()); err != nil {
			return false, err
		}
	}
	return t.revision != t.began, t.exec("COMMIT")
}
