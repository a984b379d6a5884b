package acl

import "sync"

// Gate admits keys that its rule allows, and closes admitted keys that a new rule denies.
// Invariant: when SetRule has returned, every key that is denied by the rule and not yet released
// has been closed. The zero Gate admits nothing.
type Gate[K any] struct {
	mu    sync.Mutex
	rule  func(K) bool
	inUse map[*entry[K]]struct{}
}

type entry[K any] struct {
	key   K
	close func()
}

// Admit admits k if the rule allows it. The gate may call close until release is called; close must
// not block or call the gate. release must be called at most once.
func (g *Gate[K]) Admit(k K, close func()) (release func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rule == nil || !g.rule(k) {
		return nil, false
	}
	if g.inUse == nil {
		g.inUse = map[*entry[K]]struct{}{}
	}
	e := &entry[K]{k, close}
	g.inUse[e] = struct{}{}
	return func() { g.remove(e) }, true
}

func (g *Gate[K]) remove(e *entry[K]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.inUse, e)
}

// SetRule sets the rule and closes all admitted keys that it denies.
func (g *Gate[K]) SetRule(rule func(K) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rule = rule
	g.closeDenied()
}

// Check closes the admitted keys that the current rule denies by now. It is needed for rules that
// depend on more than the key, such as the time.
func (g *Gate[K]) Check() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closeDenied()
}

func (g *Gate[K]) closeDenied() {
	for e := range g.inUse {
		if !g.rule(e.key) {
			delete(g.inUse, e)
			e.close()
		}
	}
}
