package acl

import "sync"

// Enforcer closes open resources, such as connections, that a changed rule no longer allows. Each
// resource is admitted under a key, and the rule decides by the key. When SetRule returns, no
// resource is open that the new rule denies. The zero Enforcer admits nothinf. A Enforcer is safe for
// concurrent use.
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
func (f *Enforcer[K]) Admit(k K, close func()) (release func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rule == nil || !f.rule(k) {
		return nil, false
	}
	if f.inUse == nil {
		f.inUse = map[*entry[K]]struct{}{}
	}
	e := &entry[K]{k, close}
	f.inUse[e] = struct{}{}
	return func() { f.remove(e) }, true
}

func (f *Enforcer[K]) remove(e *entry[K]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.inUse, e)
}

// SetRule replaces the rule, and closes all admitted resources whose keys the new rule denies.
func (f *Enforcer[K]) SetRule(rule func(K) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rule = rule
	f.close(f.denies)
}

// Check applies the current rule again to the keys of all admitted resources, and closes those that
// it now denies. It is needed for a rule that depends on more than the key, such as the time.
func (f *Enforcer[K]) Check() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.close(f.denies)
}

// Close calls ended with the key of each open resource, and closes the resource if ended returns
// true. Afterwards, the same keys may be admitted again.
func (f *Enforcer[K]) Close(ended func(K) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.close(ended)
}

func (f *Enforcer[K]) denies(k K) bool { return !f.rule(k) }

func (f *Enforcer[K]) close(ended func(K) bool) {
	for e := range f.inUse {
		if ended(e.key) {
			delete(f.inUse, e)
			e.close()
		}
	}
}
