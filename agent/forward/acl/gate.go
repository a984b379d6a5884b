package acl

import "sync"

// Gate admits what its rule allows and closes what a new rule denies. Law: once
// SetRule has returned, nothing admitted and not yet released is denied by the
// rule in force without having been closed. The zero Gate admits nothing.
type Gate[K any] struct {
	mu    sync.Mutex
	rule  func(K) bool
	inUse map[*entry[K]]struct{}
}

type entry[K any] struct {
	key   K
	close func()
}

// Admit admits k where the rule allows it. Then, close is kept until release is called, to
// be called at most once; it must not block or call the gate.
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

// SetRule puts a rule in force and closes what it denies; the rest stays.
func (g *Gate[K]) SetRule(rule func(K) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rule = rule
	g.closeDenied()
}

// Check closes what the rule in force denies by now, where it goes by more than the key.
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
