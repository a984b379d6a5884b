package usage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// rest is the time between two returns of unused memory to the kernel while much is in use, and
	// quiet that while the process is idle. By itself, the runtime keeps the memory of a burst, and
	// the stacks of goroutines that have ended, for minutes.
	rest  = 10 * time.Second
	quiet = time.Second
	// hardly is the amount allocated per second by an idle process.
	hardly = 512 << 10
	// worth is the amount that must have been allocated, and worthEnded the number of goroutines
	// that must have ended, for a collection to be worthwhile.
	worth      = 2 << 20
	worthEnded = 64
)

// unused tracks when memory was returned to the kernel, and the changes since.
type unused struct {
	returned, measured time.Time
	allocated, before  uint64 // at those times
	most               int    // maximum number of goroutines since returned
}

// release returns memory to the kernel if it is time.
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
		runtime.GC() // the content of pools survives the first collection
		debug.FreeOSMemory()
		u.returned, u.allocated, u.most = now, allocated, runtime.NumGoroutine()
	}
}

// taken returns the total of allocated bytes and the memory of the process.
func taken() (allocated uint64, resident int64) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), int64(s[1].Value.Uint64() - s[2].Value.Uint64())
}
