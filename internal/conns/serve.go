package conns

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// grace is the time that open requests have to end when the server stops.
const grace = 5 * time.Second

// Serve runs an HTTP server on a listener until ctx ends or the listener fails. Open requests then
// have five seconds until their connections are closed, and their handlers have another five
// seconds to return. The server logs nothing about its connections after Serve has returned.
func Serve(ctx context.Context, hs *http.Server, l net.Listener) error {
	var open sync.WaitGroup
	state := hs.ConnState
	hs.ConnState = func(c net.Conn, to http.ConnState) {
		if state != nil {
			state(c, to)
		}
		switch to {
		case http.StateNew:
			open.Add(1)
		case http.StateHijacked, http.StateClosed:
			open.Done()
		}
	}
	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if hs.Shutdown(end) != nil {
			hs.Close()
		}
	}()
	err := hs.Serve(l)
	stop()
	<-stopped
	wait(&open)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// wait waits for all, but no longer than the grace period.
func wait(all *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() { defer close(ended); all.Wait() }()
	select {
	case <-ended:
	case <-time.After(grace):
	}
}
