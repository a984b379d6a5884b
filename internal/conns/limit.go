package conns

import "sync"

// PerKey limits the number of items that each key may hold at the same time. For example, the items
// are connections, and the keys are callers. It is safe for concurrent use.
type PerKey[K comparable] struct {
	max int

	mu   sync.Mutex
	held map[K]int
}

// NewPerKey returns a PerKey in which each key may hold limit items. A limit below 1 counts as 1.
func NewPerKey[K comparable](limit int) *PerKey[K] {
	return &PerKey[K]{max: max(limit, 1), held: map[K]int{}}
}

// Max returns the maximum number of items that each key may hold.
func (p *PerKey[K]) Max() int { return p.max }

// Acquire counts a new item of the given key until release is called. If the key already holds the
// maximum number of items, it returns false. Otherwise, the caller must call release exactly once.
func (p *PerKey[K]) Acquire(k K) (release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[k] >= p.max {
		return nil, false
	}
	p.held[k]++
	return func() { p.release(k) }, true
}

func (p *PerKey[K]) release(k K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[k]--; p.held[k] == 0 {
		delete(p.held, k)
	}
}
