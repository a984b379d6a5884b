package server

import "sync"

// places are what all who ask share, of which each has a share.
type places[K comparable] struct {
	most int

	mu    sync.Mutex
	taken map[K]int
}

func newPlaces[K comparable](most int) *places[K] {
	return &places[K]{most: max(most, 1), taken: map[K]int{}}
}

// take takes one of k's, unless it has all that it may. free is to be called once.
func (p *places[K]) take(k K) (free func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[k] >= p.most {
		return nil, false
	}
	p.taken[k]++
	return func() { p.free(k) }, true
}

func (p *places[K]) free(k K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[k]--; p.taken[k] == 0 {
		delete(p.taken, k)
	}
}
