package archive

import (
	"context"
	"sync"
)

// memory is a cache for one process: hosts that come at once share what each of them would read. A
// nil memory caches nothing.
type memory struct {
	mu      sync.Mutex
	buckets map[string]decoded // by key, of the index
	next    *reading           // that begins when the one at work has ended
	busy    bool               // one is at work
}

// decoded is a bucket of the index at a revision of its key.
type decoded struct {
	index
	modified int64
}

// maxBuckets bounds the cached buckets, to those of 32,000 hosts.
const maxBuckets = 2048

// Remembering returns an archive that caches the index, and in which hosts that ask at the same
// time share one read, for a process that serves many hosts.
func (a Archive) Remembering() Archive {
	a.memory = &memory{buckets: map[string]decoded{}}
	return a
}

func (m *memory) bucket(key string, modified int64) (index, bool) {
	if m == nil {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	is, ok := m.buckets[key]
	return is.index, ok && is.modified == modified
}

func (m *memory) keep(key string, modified int64, of index) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.buckets) >= maxBuckets {
		clear(m.buckets)
	}
	m.buckets[key] = decoded{of, modified}
}

// reading is one read of the offering, for all callers that wait for it.
type reading struct {
	done chan struct{}
	is   offering
	err  error
}

// read returns an offering that was read after the call began. A caller that arrives during a read
// waits for the next one, which serves all waiting callers.
func (m *memory) read(ctx context.Context, read func(context.Context) (offering, error)) (offering, error) {
	if m == nil {
		return read(ctx)
	}
	m.mu.Lock()
	if m.next == nil {
		m.next = &reading{done: make(chan struct{})}
	}
	mine := m.next
	if !m.busy {
		m.busy = true
		go m.work(context.WithoutCancel(ctx), read)
	}
	m.mu.Unlock()
	select {
	case <-mine.done:
		return mine.is, mine.err
	case <-ctx.Done():
		return offering{}, ctx.Err()
	}
}

// work reads for as long as somebody waits.
func (m *memory) work(ctx context.Context, read func(context.Context) (offering, error)) {
	for {
		m.mu.Lock()
		r := m.next
		m.next, m.busy = nil, r != nil
		m.mu.Unlock()
		if r == nil {
			return
		}
		r.is, r.err = read(ctx)
		close(r.done)
	}
}
