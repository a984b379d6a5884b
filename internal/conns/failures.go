package conns

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Failures counts failures to accept connections or to receive datagrams, such as while the process is out of file descriptors.
// All listeners of one part share one: it is one cause, and one line a minute in the log.
type Failures struct {
	Log     *slog.Logger
	Message string // of a line; "a listener fails" where it is empty

	mu   sync.Mutex
	last time.Time // line in the log
	more int       // failures since
}

const (
	failurePause    = 50 * time.Millisecond
	failureInterval = time.Minute
)

// Pause logs a failure of a listener, or counts it, and waits so that the listener does not spin. Its
// line has the number of those that were counted.
func (f *Failures) Pause(listener any, err error) {
	f.Note(listener, err)
	time.Sleep(failurePause)
}

// Note logs a failure of a listener, or counts it.
func (f *Failures) Note(listener any, err error) { f.note(listener, err, time.Now()) }

func (f *Failures) note(listener any, err error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.last.IsZero() && now.Sub(f.last) < failureInterval {
		f.more++
		return
	}
	attrs := []any{"listener", listener, "error", err}
	if f.more > 0 {
		attrs = append(attrs, "more", f.more)
	}
	f.last, f.more = now, 0
	f.Log.Error(cmp.Or(f.Message, "a listener fails"), attrs...)
}

// Patient is a listener whose Accept does not return while l fails for a while, as it does when the
// process is out of file descriptors: http.Server would log each try, one a second. Failures are
// logged to log, or to slog.Default where it is nil.
func Patient(l net.Listener, log *slog.Logger) net.Listener {
	return &patient{l, Failures{Log: cmp.Or(log, slog.Default())}}
}

type patient struct {
	net.Listener
	failures Failures
}

func (p *patient) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		// What http.Server goes by: of a listener it has the errors that pass.
		var passing interface{ Temporary() bool }
		if err == nil || !errors.As(err, &passing) || !passing.Temporary() {
			return c, err
		}
		p.failures.Pause(p.Addr(), err)
	}
}
