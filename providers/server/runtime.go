package server

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// waiting is the number of threads that may wait for the disk while others use all processors.
const waiting = 2

// unused is the amount of garbage in bytes that is allowed in addition to the usual share of live
// memory. It is necessary because a provider with few requests has hardly any live memory.
const unused = 16 << 20

// tuned reports whether TuneRuntime was called. This is so only in a process that does nothing but
// serve.
var tuned atomic.Bool

// reserve raises the amount of live memory that the garbage collector counts. It is never resident,
// because it is neither read nor written.
var reserve []byte

// TuneRuntime tunes the Go runtime of a provider process. Only the first call has an effect. It
// raises GOMAXPROCS, so that a commit that returns from the disk does not wait while requests
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
