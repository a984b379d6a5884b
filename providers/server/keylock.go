package server

import (
	"context"
	"sync"
)

// keyLocks ensures that only one request at a time is decided for each key.
type keyLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the key is released
}

// lock waits until no other request holds a key. The returned function releases the key.
func (k *keyLocks) lock(ctx context.Context, key string) (release func(), err error) {
	for {
		k.mu.Lock()
		busy, held := k.held[key]
		if !held {
			over := make(chan struct{})
			if k.held == nil {
				k.held = map[string]chan struct{}{}
			}
			k.held[key] = over
			k.mu.Unlock()
			return func() { k.end(key, over) }, nil
		}
		k.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (k *keyLocks) end(key string, over chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, key)
	close(over)
}

// take waits until no other request is decided for the need with the given key in the store.
// Effects outside of the state are therefore complete and recorded before the next decision begins.
// The method done releases it.
func (a *Request) take(ctx context.Context, place string) (err error) {
	if a.release == nil { // else it decides anew
		a.release, err = a.locks.lock(ctx, place)
	}
	return err
}

func (a *Request) done() {
	if a.release != nil {
		a.release()
	}
}
