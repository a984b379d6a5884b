package server

import (
	"context"
	"sync"
)

// queues ensures that only one request at a time is decided for each key.
type queues struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when its turn ends
}

// take waits until no other request holds a key. The returned function releases the key.
func (q *queues) take(ctx context.Context, key string) (release func(), err error) {
	for {
		q.mu.Lock()
		busy, held := q.held[key]
		if !held {
			over := make(chan struct{})
			if q.held == nil {
				q.held = map[string]chan struct{}{}
			}
			q.held[key] = over
			q.mu.Unlock()
			return func() { q.end(key, over) }, nil
		}
		q.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (q *queues) end(key string, over chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.held, key)
	close(over)
}

// take waits until no other request is decided for the need with the given key in the store.
// Effects outside of the state are therefore complete and recorded before the next decision begins.
// The turn ends when the request is done.
func (a *Request) take(ctx context.Context, place string) (err error) {
	if a.release == nil { // else it decides anew
		a.release, err = a.queues.take(ctx, place)
	}
	return err
}

func (a *Request) done() {
	if a.release != nil {
		a.release()
	}
}
