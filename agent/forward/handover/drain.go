package handover

import (
	"context"
	"sync"
	"time"
)

// Tasks runs tasks, such as connections, that may continue for a while after the process has begun
// to stop. Close gives the tasks a grace period to end, and then cancels their context.
type Tasks struct {
	hard  context.Context
	kill  context.CancelFunc
	tasks sync.WaitGroup

	mu     sync.Mutex
	closed bool
	n      int
	empty  chan struct{} // closed by the last task; nil while no caller waits
}

// NewTasks returns an empty Tasks.
func NewTasks() *Tasks {
	hard, kill := context.WithCancel(context.Background())
	return &Tasks{hard: hard, kill: kill}
}

// Go starts a task in a goroutine and returns true. The task must return soon after its context
// ends. After Close was called, Go starts no task and returns false.
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

// Begin counts a task that has no goroutine of its own. The task must end soon after the returned
// context ends, and the caller must call the function ended exactly once when the task has ended.
// After Close was called, no task may begin, and ok is false.
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

// Wait waits until no tasks are left, or ctx ends. New tasks may still be started.
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

// Close waits for the tasks during the grace period, then ends their context. It returns when all
// tasks have ended.
func (g *Tasks) Close(grace time.Duration) {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	timer := time.AfterFunc(grace, g.kill)
	defer timer.Stop()
	defer g.kill()
	g.tasks.Wait()
}
