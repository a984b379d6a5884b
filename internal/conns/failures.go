package conns

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Failures logs errors of listeners that cannot accept connections or receive datagrams, for
// example because the process has no free file descriptors. It logs at most one line a minute, with
// the number of errors since the last line. Listeners that usually fail for the same reason share a
// Failures.
type Failures struct {
	Log     *slog.Logger
	Message string // message of each line; if empty, "a listener fails"

	mu   sync.Mutex
	last time.Time // time of the last line
	more int       // number of failures since the last line
}

const (
	failurePause    = 50 * time.Millisecond
	failureInterval = time.Minute
)

// Pause logs or counts an error of a listener, as Note does. It then sleeps briefly, so that a
// caller that retries in a loop does not use all processor time.
func (f *Failures) Pause(listener any, err error) {
	f.Note(listener, err)
	time.Sleep(failurePause)
}

// Note logs an error of a listener. If the last line is less than a minute old, Note only counts
// the error, and the next line contains the count.
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

// Patient returns a listener whose Accept retries after temporary errors of l, such as a lack of
// file descriptors. It logs these errors as Failures does, instead of one line for each attempt as
// http.Server. If log is nil, it uses slog.Default.
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
