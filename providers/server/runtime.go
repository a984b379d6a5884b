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

// TuneRuntime is for a process that serves, once. A commit that comes back from the disk finds a
// processor of the runtime, and does not wait behind the requests that use as many as the machine
// has; GOMAXPROCS and GOGC of the environment stay as they are.
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
