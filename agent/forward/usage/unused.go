package usage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// rest is between two times that unused memory is returned to the kernel while much is
	// taken, and quiet while hardly anything happens. The runtime by itself keeps for minutes
	// what a burst took, and stacks of goroutines that have ended.
	rest  = 10 * time.Second
	quiet = time.Second
	// hardly is what is allocated in a second where nothing is carried.
	hardly = 512 << 10
	// worth is how much must have been allocated, or how many goroutines must have ended, for
	// a collection to be worth it.
	worth      = 2 << 20
	worthEnded = 64
)

// unused knows when memory was returned, and what has happened since.
type unused struct {
	returned, measured time.Time
	allocated, before  uint64 // at those times
	most               int    // goroutines since returned
}

// release returns memory to the kernel, when it is time.
func (u *unused) release(limit int64) {
	now := time.Now()
	allocated, resident := taken()
	u.most = max(u.most, runtime.NumGoroutine())
	calm := false
	if now.Sub(u.measured) >= quiet {
		calm = allocated-u.before < hardly
		u.measured, u.before = now, allocated
	}
	dirty := allocated-u.allocated > worth || u.most-runtime.NumGoroutine() > worthEnded
	if calm && dirty || now.Sub(u.returned) > rest && resident > limit/8 {
		runtime.GC() // what pools have survives the first
		debug.FreeOSMemory()
		u.returned, u.allocated, u.most = now, allocated, runtime.NumGoroutine()
	}
}

// taken is how much was ever allocated, and the memory that the process has.
func taken() (allocated uint64, resident int64) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), int64(s[1].Value.Uint64() - s[2].Value.Uint64())
}
