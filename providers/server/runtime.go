package server

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// waiting is the number of threads that may wait for the disk while others use all processors.
const waiting = 2

// unused is the amount of garbage, in bytes, that is allowed besides the usual share of live
// memory. A provider with few requests has hardly any live memory.
const unused = 16 << 20

// tuned reports whether this process serves and does nothing else.
var tuned atomic.Bool

// reserve counts as live memory but is never resident, because nothing reads or writes it.
var reserve []byte

// TuneRuntime tunes the Go runtime of a provider process; only the first call has an effect. It
// raises GOMAXPROCS, so that a commit that returns from the disk does not wait behind requests that
// occupy all processors. GOMAXPROCS and GOGC in the environment take precedence.
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
