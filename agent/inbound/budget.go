package inbound

import (
	"sync"

	"florete"
)

// perPeer is how many connections and flows a peer may have to this host. Each takes a
// file of the forwarder's, which has 65,536 for all it carries.
const perPeer = 1 << 14

// budget counts what peers have open.
type budget struct {
	most int

	mu   sync.Mutex
	open map[florete.ID]int
}

func newBudget(most int) *budget { return &budget{most: most, open: map[florete.ID]int{}} }

// take counts one in, unless the peer has as many as it may. give is to be called once.
func (b *budget) take(peer florete.ID) (give func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[peer] >= b.most {
		return nil, false
	}
	b.open[peer]++
	return func() { b.give(peer) }, true
}

func (b *budget) give(peer florete.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[peer]--; b.open[peer] == 0 {
		delete(b.open, peer)
	}
}
