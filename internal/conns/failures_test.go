package conns_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/conns"
)

// TestFailures checks that the log gets one line a minute with the number of failures. The number
// of failing listeners and the duration must make no difference.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := &conns.Failures{Log: slog.New(slog.NewTextHandler(&log, nil))}
		until := time.Now().Add(10 * time.Minute)
		var listeners sync.WaitGroup
		for i := range 20 {
			listeners.Go(func() {
				for time.Now().Before(until) {
					f.Pause(i, syscall.EMFILE)
				}
			})
		}
		listeners.Wait()
		if n := strings.Count(log.String(), "\n"); n < 9 || n > 11 || !strings.Contains(log.String(), syscall.EMFILE.Error()) || strings.Count(log.String(), " more=2") < 8 {
			t.Errorf("%d lines in ten minutes:\n%s", n, &log)
		}
	})
}

// failing is a listener whose Accept fails a given number of times. After that, the listener is
// closed.
type failing struct {
	net.Listener
	tries int
}

func (f *failing) Addr() net.Addr { return &net.TCPAddr{} }
func (f *failing) Close() error   { return nil }

func (f *failing) Accept() (net.Conn, error) {
	if f.tries--; f.tries < 0 {
		return nil, net.ErrClosed
	}
	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

// TestPatient checks a server whose process has no free file descriptors for ten minutes. The
// server must log one line a minute, and end when its listener is closed.
func TestPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log, own bytes.Buffer
		hs := &http.Server{ErrorLog: slog.NewLogLogger(slog.NewTextHandler(&own, nil), slog.LevelError)}
		l := &failing{tries: int(10 * time.Minute / (50 * time.Millisecond))}
		if err := hs.Serve(conns.Patient(l, slog.New(slog.NewTextHandler(&log, nil)))); !errors.Is(err, net.ErrClosed) {
			t.Errorf("it ends with %v", err)
		}
		if n := strings.Count(log.String(), "\n"); n < 9 || n > 11 || own.Len() > 0 {
			t.Errorf("%d lines in ten minutes:\n%s%s", n, &log, &own)
		}
	})
}
