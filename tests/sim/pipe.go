package sim

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipe is one direction of a simulated connection. Writes arrive in order, each after its delay.
type pipe struct {
	mu       sync.Mutex
	pieces   []piece
	last     time.Time     // arrival time of the newest piece
	broken   error         // if set, the error of all reads and writes
	stalled  bool          // whether later writes are lost
	deadline time.Time     // deadline of the reader
	changed  chan struct{} // closed and replaced at each change
}

// piece is the data of one write. If data is nil, the piece is the end of the stream.
type piece struct {
	at   time.Time
	data []byte
}

func newPipe() *pipe { return &pipe{changed: make(chan struct{})} }

// change changes the pipe with the function alter, and wakes the reader.
func (p *pipe) change(alter func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	alter()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *pipe) read(b []byte) (int, error) {
	for {
		n, changed, next, err := p.look(b)
		if n > 0 || err != nil {
			return n, err
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// look reads data that has arrived. If no data has arrived, it returns a channel and a time for
// which the reader must wait.
func (p *pipe) look(b []byte) (n int, changed <-chan struct{}, next time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	next = now.Add(24 * time.Hour)
	if len(p.pieces) > 0 {
		next = p.pieces[0].at
	}
	switch {
	case p.broken != nil:
		return 0, nil, next, p.broken
	case !p.deadline.IsZero() && !now.Before(p.deadline):
		return 0, nil, next, os.ErrDeadlineExceeded
	case len(p.pieces) > 0 && !now.Before(next):
		first := &p.pieces[0]
		if first.data == nil {
			return 0, nil, next, io.EOF
		}
		n = copy(b, first.data)
		if first.data = first.data[n:]; len(first.data) == 0 {
			p.pieces = p.pieces[1:]
		}
		return n, nil, next, nil
	}
	if !p.deadline.IsZero() && p.deadline.Before(next) {
		next = p.deadline
	}
	return 0, p.changed, next, nil
}

// write sends data with a delay. If data is nil, it ends the stream.
func (p *pipe) write(data []byte, after time.Duration) (err error) {
	p.change(func() {
		switch {
		case p.broken != nil:
			err = p.broken
		case !p.stalled:
			at := time.Now().Add(after)
			if at.Before(p.last) {
				at = p.last
			}
			p.last = at
			p.pieces = append(p.pieces, piece{at, data})
		}
	})
	return err
}

func (p *pipe) reset() { p.change(func() { p.broken = syscall.ECONNRESET }) }
func (p *pipe) stall() { p.change(func() { p.stalled, p.pieces = true, nil }) }
