// Package drain runs tasks that may outlive the decision to stop, for a bounded
// time.
package drain

import (
	"context"
	"sync"
	"time"
)

// Group runs tasks until Close. Their context ends when Close has waited long
// enough.
type Group struct {
	hard  context.Context
	kill  context.CancelFunc
	tasks sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// New returns a group without tasks.
func New() *Group {
	hard, kill := context.WithCancel(context.Background())
	return &Group{hard: hard, kill: kill}
}

// Go starts a task, which must end soon after its context does. It does nothing
// and returns false once Close was called.
func (g *Group) Go(task func(ctx context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.tasks.Go(func() { task(g.hard) })
	return true
}

// Close lets the tasks end by themselves for the time of grace, then ends their
// context, and returns when all have ended.
func (g *Group) Close(grace time.Duration) {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	timer := time.AfterFunc(grace, g.kill)
	defer timer.Stop()
	defer g.kill()
	g.tasks.Wait()
}
