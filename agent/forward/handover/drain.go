package handover

import (
	"context"
	"sync"
	"time"
)

// Tasks runs tasks that may continue for a limited time after a decision to stop. Their context
// ends when Close has waited for the grace period.
type Tasks struct {
	hard  context.Context
	kill  context.CancelFunc
	tasks sync.WaitGroup

	mu     sync.Mutex
	closed bool
	n      int
	empty  chan struct{} // closed by the last task; nil while nobody waits
}

// NewTasks returns a Tasks without tasks.
func NewTasks() *Tasks {
	hard, kill := context.WithCancel(context.Background())
	return &Tasks{hard: hard, kill: kill}
}

// Go starts a task, which must return soon after its context ends. It returns false, without
// starting the task, after Close was called.
func (g *Tasks) Go(task func(ctx context.Context)) bool {
	ctx, ended, ok := g.Begin()
	if ok {
		go func() {
			defer ended()
			task(ctx)
		}()
	}
	return ok
}

// Begin counts a task that has no goroutine of its own. ended must be called exactly once when the
// task has ended, soon after ctx ends. ok is false after Close was called.
func (g *Tasks) Begin() (ctx context.Context, ended func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, false
	}
	g.n++
	g.tasks.Add(1)
	return g.hard, g.ended, true
}

func (g *Tasks) ended() {
	defer g.tasks.Done()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// Wait waits until there are no tasks, or ctx ends. New tasks may be started.
func (g *Tasks) Wait(ctx context.Context) {
	g.mu.Lock()
	if g.n == 0 {
		g.mu.Unlock()
		return
	}
	if g.empty == nil {
		g.empty = make(chan struct{})
	}
	empty := g.empty
	g.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}

// Close waits for the tasks during grace, then ends their context, and returns when all tasks have
// ended.
func (g *Tasks) Close(grace time.Duration) {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	timer := time.AfterFunc(grace, g.kill)
	defer timer.Stop()
	defer g.kill()
	g.tasks.Wait()
}
