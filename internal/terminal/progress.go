package terminal

import (
	"fmt"
	"os"
	"time"
)

// Progress shows on a terminal the name of an operation that takes longer than a second. The
// function that it returns erases the line.
func Progress(what string) (done func()) {
	if !Colours(os.Stderr) {
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

// Colours reports whether f is a terminal whose user wants colours (no-color.org).
func Colours(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
