package handover

import (
	"context"
	"sync"
	"time"
)

// Tasks runs tasks that may outlive the decision to stop, for a bounded time: their context ends when
// Close has waited long enough.
type Tasks struct {
	hard  context.Context
	kill  context.CancelFunc
	tasks sync.WaitGroup

	mu     sync.Mutex
	closed bool
	n      int
	empty  chan struct{} // closed with the last task; nil while nobody waits
}

// NewTasks returns a group without tasks.
func NewTasks() *Tasks {
	hard, kill := context.WithCancel(context.Background())
	return &Tasks{hard: hard, kill: kill}
}

// Go starts a task, which must end soon after its context does. It does nothing
// and returns false once Close was called.
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

// Begin counts a task in that no goroutine waits for. ended must be called once, when it has
// ended: soon after ctx does.
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

// Wait returns when there are no tasks, or ctx ends. More may be started.
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

// Close lets the tasks end by themselves for the time of grace, then ends their
// context, and returns when all have ended.
func (g *Tasks) Close(grace time.Duration) {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	timer := time.AfterFunc(grace, g.kill)
	defer timer.Stop()
	defer g.kill()
	g.tasks.Wait()
}
