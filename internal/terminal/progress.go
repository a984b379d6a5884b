package terminal

import (
	"fmt"
	"os"
	"time"
)

// Progress shows the name of an operation on the terminal while the operation runs. Nothing is
// shown during the first second. The caller must call done when the operation ends, which erases
// the name.
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

// Colours reports whether a program should use colours in its output to f. It returns true if f is
// a terminal and its user has not disabled colours (no-color.org).
func Colours(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
