package sim

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errKilled is the error of every operation of a process that has died.
var errKilled = errors.New("killed")

// process is a simulated process on a machine. A process that dies is started again within a
// minute, as a new life. The new life has the files of the previous one.
type process struct {
	f    *Fleet
	name string
	run  func(context.Context, *life) // returns when everything that it started has ended
	dead func(*life)                  // called at the moment of death

	mu     sync.Mutex
	lives  int
	deaths int // number of deaths that are still to come
	life   *life
	quit   chan struct{}
	ended  chan struct{}
}

// moments is the number of moments among which the moment of a death is drawn. A host has about as
// many until all its needs are fulfilled.
const moments = 160

// life is one life of a process, which may die at any moment. Each read and write of a connection,
// each step of a delivery and each commit is a moment.
type life struct {
	*process
	cancel context.CancelFunc

	mu    sync.Mutex
	count int
	fatal int // number of the moment of death; zero for none
	over  bool
}

// moment counts a moment of a life. It returns errKilled if the process has died.
func (l *life) moment(what string) error {
	l.mu.Lock()
	l.count++
	dead, now := l.over, l.count == l.fatal
	l.mu.Unlock()
	if now {
		l.kill(what)
	}
	if dead || now {
		return errKilled
	}
	return nil
}

// kill ends a life of a process at once, without any cleanup.
func (l *life) kill(at string) {
	l.mu.Lock()
	again, count := l.over, l.count
	l.over = true
	l.mu.Unlock()
	if again {
		return
	}
	l.f.log("%s killed at moment %d, %s", l.name, count, at)
	l.f.count("killed")
	l.dead(l)
	l.f.net.cut(l.name)
	l.cancel()
}

func (l *life) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.over
}

// Start starts the process. Until Stop is called, the process is started again whenever it dies. If
// the process is running, Start does nothing.
func (p *process) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quit != nil {
		return
	}
	p.quit, p.ended = make(chan struct{}), make(chan struct{})
	p.f.log("%s starts", p.name)
	go p.live(p.quit, p.ended)
}

func (p *process) live(quit, ended chan struct{}) {
	defer close(ended)
	for {
		ctx, l := p.born()
		go func() {
			select {
			case <-quit:
				l.cancel()
			case <-ctx.Done():
			}
		}()
		p.run(ctx, l)
		l.cancel()
		select {
		case <-quit:
			return
		case <-time.After(time.Duration(p.f.rand("down", p.name, p.lives).Int64N(int64(time.Minute)))):
		}
	}
}

func (p *process) born() (context.Context, *life) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	p.lives++
	p.life = &life{process: p, cancel: cancel}
	if p.deaths > 0 {
		p.deaths--
		p.life.fatal = 1 + p.f.rand("death", p.name, p.lives).IntN(moments)
	}
	return ctx, p.life
}

// Stop ends the process as systemd does, which gives it time to clean up, and waits until it has
// ended.
func (p *process) Stop() {
	p.mu.Lock()
	quit, ended := p.quit, p.ended
	p.quit = nil
	p.mu.Unlock()
	if quit != nil {
		p.f.log("%s stops", p.name)
		close(quit)
		<-ended
	}
}

// Restart stops the process as systemd does and starts it again.
func (p *process) Restart() {
	p.Stop()
	p.Start()
}

// Kill ends the process at once, without time to clean up. The process is started again within a
// minute.
func (p *process) Kill() {
	p.mu.Lock()
	l := p.life
	p.mu.Unlock()
	if l != nil {
		l.kill("from outside")
	}
}

// die makes the process die the given number of additional times. Each death is at a random moment
// of a new life.
func (p *process) die(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaths += n
}

func (p *process) pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deaths
}

func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.quit != nil
}
