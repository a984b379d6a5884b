package server

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// waiting is how many threads wait for the disk while others have all processors.
const waiting = 2

// unused is how much may become garbage before it is collected, beside as much as lives: of a
// provider with few requests nearly nothing lives.
const unused = 16 << 20

// tuned reports whether this process serves and nothing else.
var tuned atomic.Bool

// reserve counts as memory that lives, and is never resident: nothing reads or writes it.
var reserve []byte

// TuneRuntime tunes the Go runtime of a serving process; further calls do nothing. It adds
// processors to GOMAXPROCS, so that a commit that returns from the disk does not wait behind
// requests that occupy all of them. GOMAXPROCS and GOGC in the environment take precedence.
var TuneRuntime = sync.OnceFunc(func() {
	tuned.Store(true)
	if os.Getenv("GOGC") == "" {
		reserve = make([]byte, unused)
		runtime.KeepAlive(reserve) // which is all that ever reads it
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + waiting)
	}
})
