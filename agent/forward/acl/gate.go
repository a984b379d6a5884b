package acl

import "sync"

// Gate decides which keys are admitted. A key stands for an open resource, such as a connection.
// The gate admits a key if its current rule allows the key. When a new rule denies an admitted key,
// the gate closes the resource: after SetRule returns, nothing that the rule denies is open. The
// zero Gate admits no keys.
type Gate[K any] struct {
	mu    sync.Mutex
	rule  func(K) bool
	inUse map[*entry[K]]struct{}
}

type entry[K any] struct {
	key   K
	close func()
}

// Admit admits the key k if the rule allows it. The result ok is true if the key was admitted. If a
// later rule denies the key, the gate calls the function close once. This function must not block
// and must not call the gate. The caller of Admit calls release, at most once, when it no longer
// uses the key.
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

// SetRule replaces the rule and closes all admitted keys that the new rule denies.
func (g *Gate[K]) SetRule(rule func(K) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rule = rule
	g.closeDenied()
}

// Check applies the current rule to all admitted keys again and closes those that it now denies.
// Call it for a rule that depends on more than the key, such as the time.
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
