package main

import (
	"fmt"
	"os"
	"time"
)

// progress says on a terminal what takes longer than a second, and wipes it once
// the function it returns is called.
func progress(what string) (done func()) {
	if !colours(os.Stderr) {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		start := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(os.Stderr, "\r%s, %d s", what, int(time.Since(start).Seconds()))
			case <-stop:
				fmt.Fprint(os.Stderr, "\r\x1b[K")
				return
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
