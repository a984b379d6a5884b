package archive

import (
	"context"
	"sync"
)

// memory caches the parts of the archive that hosts read, so that hosts that call at the same time
// share one read. It belongs to one process. A nil memory caches nothing.
type memory struct {
	mu      sync.Mutex
	buckets map[string]decoded // by key in the index
	next    *reading           // begins when the current read has ended
	busy    bool               // a read is in progress
}

// decoded is a decoded bucket of the index, with the revision of the bucket's key.
type decoded struct {
	index
	modified int64
}

// maxBuckets is the largest number of cached buckets. This many buckets contain about 32,000 hosts.
const maxBuckets = 2048

// Remembering returns an Archive for a process that serves many hosts. It caches the index of
// documents in memory, and requests that arrive at the same time share one read of the state store.
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

// reading is one read of the offering. All callers that wait for it share the result.
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

// work reads the offering as long as at least one caller waits for it.
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
