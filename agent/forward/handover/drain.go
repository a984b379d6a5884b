package handover

import (
	"context"
	"sync"
	"time"
)

// Tasks runs tasks, such as connections, that may continue for a while when the process begins to
// stop. Close gives them a grace period, and then cancels their context. Tasks is safe for
// concurrent use.
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

// Go runs a task in a new goroutine and returns true. The task must return soon after its context
// ends. If Close was called, Go returns false and does not run the task.
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

// Begin counts a task that does not run in a goroutine started by Go. The task must end soon after
// ctx ends, and the caller must then call ended, exactly once. If Close was called, ok is false and
// the task must not begin.
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

// Wait waits until no tasks are left, or until ctx ends. Meanwhile, new tasks may begin.
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

// Close lets no more tasks begin, and waits for the running ones. After the grace period, it
// cancels their context. It returns when all tasks have ended.
func (g *Tasks) Close(grace time.Duration) {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	timer := time.AfterFunc(grace, g.kill)
	defer timer.Stop()
	defer g.kill()
	g.tasks.Wait()
}
