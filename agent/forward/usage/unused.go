package usage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// rest is the time between two returns of unused memory to the kernel while much memory is in
	// use. quiet is the time between two returns while the process is idle. Without them, the Go
	// runtime keeps the memory of a burst, and the stacks of ended goroutines, for minutes.
	rest  = 10 * time.Second
	quiet = time.Second
	// hardly is the rate of allocation, in bytes per second, below which the process counts as
	// idle.
	hardly = 512 << 10
	// worth and worthEnded say when a garbage collection is worthwhile while the process is idle.
	// It is if worth bytes were allocated or worthEnded goroutines have ended since the last one.
	worth      = 2 << 20
	worthEnded = 64
)

// unused returns unused memory to the kernel. It records when this last happened, and how much
// memory was allocated since.
type unused struct {
	returned, measured time.Time
	allocated, before  uint64 // total allocated bytes at these times
	most               int    // largest number of goroutines since returned
}

// release returns unused memory to the kernel, if enough time has passed since the last return and
// another return is worthwhile.
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
		runtime.GC() // pools keep their content in the first collection
		debug.FreeOSMemory()
		u.returned, u.allocated, u.most = now, allocated, runtime.NumGoroutine()
	}
}

// taken returns the total of all bytes allocated so far, and the memory that the process uses now.
func taken() (allocated uint64, resident int64) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), int64(s[1].Value.Uint64() - s[2].Value.Uint64())
}
