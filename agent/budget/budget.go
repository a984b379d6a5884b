// Package budget bounds how much of what all share one of them takes.
package budget

import "sync"

// Budget counts what each K has.
type Budget[K comparable] struct {
	most int

	mu  sync.Mutex
	has map[K]int
}

// New makes a budget in which each K may have as many as most.
func New[K comparable](most int) *Budget[K] { return &Budget[K]{most: most, has: map[K]int{}} }

// Most is how many each may have.
func (b *Budget[K]) Most() int { return b.most }

// Take counts one in, unless k has as many as it may. give is to be called once.
func (b *Budget[K]) Take(k K) (give func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.has[k] >= b.most {
		return nil, false
	}
	b.has[k]++
	return func() { b.give(k) }, true
}

func (b *Budget[K]) give(k K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.has[k]--; b.has[k] == 0 {
		delete(b.has, k)
	}
}
