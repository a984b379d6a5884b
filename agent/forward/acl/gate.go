package acl

import "sync"

// Gate closes open resources, such as connections, that a changed rule no longer allows. Each
// resource is admitted under a key, and the rule decides by the key. When SetRule returns, no
// resource is open that the new rule denies. The zero Gate admits nothing. A Gate is safe for
// concurrent use.
type Gate[K any] struct {
	mu    sync.Mutex
	rule  func(K) bool
	inUse map[*entry[K]]struct{}
}

type entry[K any] struct {
	key   K
	close func()
}

// Admit admits a resource under the key k if the current rule allows the key, and reports this as
// ok. If a later rule denies the key, the gate calls close once. The function close must not block
// and must not call the gate. The caller calls release when the resource is no longer open.
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

// SetRule replaces the rule, and closes all admitted resources whose keys the new rule denies.
func (g *Gate[K]) SetRule(rule func(K) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rule = rule
	g.close(g.denies)
}

// Check applies the current rule again to the keys of all admitted resources, and closes those that
// it now denies. It is needed for a rule that depends on more than the key, such as the time.
func (g *Gate[K]) Check() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.close(g.denies)
}

// Close calls ended with the key of each open resource, and closes the resource if ended returns
// true. Afterwards, the same keys may be admitted again.
func (g *Gate[K]) Close(ended func(K) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.close(ended)
}

func (g *Gate[K]) denies(k K) bool { return !g.rule(k) }

func (g *Gate[K]) close(ended func(K) bool) {
	for e := range g.inUse {
		if ended(e.key) {
			delete(g.inUse, e)
			e.close()
		}
	}
}
