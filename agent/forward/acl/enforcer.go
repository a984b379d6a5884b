package acl

import "sync"

// Enforcer closes open resources, such as connections, that a changed rule no longer allows. Each
// resource is admitted under a key, and the rule decides by the key. When SetRule returns, no
// resource is open that the new rule denies. The zero Enforcer admits nothing. An Enforcer is safe
// for concurrent use.
type Enforcer[K any] struct {
	mu    sync.Mutex
	rule  func(K) bool
	inUse map[*entry[K]]struct{}
}

type entry[K any] struct {
	key   K
	close func()
}

// Admit admits a resource under the key k if the current rule allows the key, and reports this as
// ok. If a later rule denies the key, the enforcer calls close once. The function close must not
// block and must not call the enforcer. The caller calls release when the resource is no longer
// open.
func (e *Enforcer[K]) Admit(k K, close func()) (release func(), ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rule == nil || !e.rule(k) {
		return nil, false
	}
	if e.inUse == nil {
		e.inUse = map[*entry[K]]struct{}{}
	}
	r := &entry[K]{k, close}
	e.inUse[r] = struct{}{}
	return func() { e.remove(r) }, true
}

func (e *Enforcer[K]) remove(r *entry[K]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.inUse, r)
}

// SetRule replaces the rule, and closes all admitted resources whose keys the new rule denies.
func (e *Enforcer[K]) SetRule(rule func(K) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rule = rule
	e.close(e.denies)
}

// Check applies the current rule again to the keys of all admitted resources, and closes those that
// it now denies. It is needed for a rule that depends on more than the key, such as the time.
func (e *Enforcer[K]) Check() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.close(e.denies)
}

// Close calls ended with the key of each open resource, and closes the resource if ended returns
// true. Afterwards, the same keys may be admitted again.
func (e *Enforcer[K]) Close(ended func(K) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.close(ended)
}

func (e *Enforcer[K]) denies(k K) bool { return !e.rule(k) }

func (e *Enforcer[K]) close(ended func(K) bool) {
	for r := range e.inUse {
		if ended(r.key) {
			delete(e.inUse, r)
			r.close()
		}
	}
}
