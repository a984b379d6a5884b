package sim

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errKilled is the error of every operation of a dead process.
var errKilled = errors.New("killed")

// process is a process on a machine. It is started and stopped; if it dies, it comes back within a
// minute as a new life with the files of the last one.
type process struct {
	f    *Fleet
	name string
	run  func(context.Context, *life) // returns when everything it started has ended
	dead func(*life)                  // called at the moment of death, for its effects

	mu     sync.Mutex
	lives  int
	deaths int // deaths still to come
	life   *life
	quit   chan struct{}
	ended  chan struct{}
}

// moments is the range from which the moment of a death is drawn: about the number of moments until
// a host has all needs fulfilled.
const moments = 160

// life is one life of a process. It consists of moments, namely each read and write of a
// connection, each step of a delivery and each commit, and can end at any of them.
type life struct {
	*process
	cancel context.CancelFunc

	mu    sync.Mutex
	count int
	fatal int // the moment of death; zero means none
	over  bool
}

// moment counts a moment. It returns errKilled if the process has died.
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

// kill ends the life without any cleanup.
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

// Start runs the process until Stop. It does nothing if the process already runs.
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

// Stop ends the process as systemd does, with time to clean up.
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

// Restart stops and starts the process.
func (p *process) Restart() {
	p.Stop()
	p.Start()
}

// Kill ends the process without any cleanup. It comes back within a minute.
func (p *process) Kill() {
	p.mu.Lock()
	l := p.life
	p.mu.Unlock()
	if l != nil {
		l.kill("from outside")
	}
}

// die makes the process die n more times, each at a moment of a new life.
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
