package conns

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Failures logs failures to accept connections or to receive datagrams, for example while the
// process is out of file descriptors. It logs at most one line a minute and counts the failures in
// between. Listeners that usually fail for the same reason share one Failures.
type Failures struct {
	Log     *slog.Logger
	Message string // message of each line; "a listener fails" if empty

	mu   sync.Mutex
	last time.Time // time of the last line
	more int       // failures since then
}

const (
	failurePause    = 50 * time.Millisecond
	failureInterval = time.Minute
)

// Pause logs or counts a failure of a listener, as Note does, and then sleeps briefly so that the
// caller's loop does not spin.
func (f *Failures) Pause(listener any, err error) {
	f.Note(listener, err)
	time.Sleep(failurePause)
}

// Note logs a failure of a listener, or counts it if the last line is less than a minute old. The
// next line contains the number of failures counted.
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

// Patient returns a listener whose Accept retries temporary errors of l, such as running out of
// file descriptors. http.Server by itself would log every retry. Failures are logged to log, or to
// slog.Default if log is nil.
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
		// http.Server uses the same test for temporary errors of a listener.
		var passing interface{ Temporary() bool }
		if err == nil || !errors.As(err, &passing) || !passing.Temporary() {
			return c, err
		}
		p.failures.Pause(p.Addr(), err)
	}
}
