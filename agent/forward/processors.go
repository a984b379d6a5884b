package forward

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"time"
)

const (
	period = 250 * time.Millisecond
	// crowded and deserted are average numbers of waiting goroutines per processor. Above crowded,
	// more processors are used; below deserted, fewer are used.
	crowded, deserted = 4, 3
	// The runtime measures only one in this many goroutines that become runnable.
	sampled = 8
)

// most is the number of processors that the Go runtime would use by default: those available to the
// process, or the quota of its control group.
var most = runtime.GOMAXPROCS(0)

// AdaptProcessors adapts the number of processors that the Go runtime uses to the load, until ctx
// ends. It does nothing if GOMAXPROCS is set in the environment.
//
// The forwarder passes each packet from goroutine to goroutine, which costs twice as much if each
// goroutine runs on another processor. The process therefore begins with one processor, and uses
// more when goroutines wait for a processor.
func AdaptProcessors(ctx context.Context) {
	if os.Getenv("GOMAXPROCS") != "" || most == 1 {
		return
	}
	defer runtime.GOMAXPROCS(most)
	used := 1
	runtime.GOMAXPROCS(used)
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for last, before := waited(), time.Now(); ; {
		select {
		case now := <-ticker.C:
			w := waited()
			n := enough(used, most, (w-last)/now.Sub(before).Seconds())
			last, before = w, now
			if n != used {
				used = n
				runtime.GOMAXPROCS(used)
			}
		case <-ctx.Done():
			return
		}
	}
}

// enough returns the number of processors to use next. The first argument is the number that is
// used now, and the result is at most the argument most. The argument waiting is the average number
// of goroutines that wait for a processor.
func enough(used, most int, waiting float64) int {
	switch {
	case waiting > float64(crowded*used):
		return min(2*used, most)
	case waiting < float64(deserted*(used-1)):
		return used - 1
	}
	return used
}

// waited returns the total time in seconds that goroutines have waited for a processor since the
// start. The increase per second is the average number of waiting goroutines (Little's law).
func waited() (total float64) {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	for i, n := range h.Counts {
		low, high := h.Buckets[i], h.Buckets[i+1]
		switch {
		case math.IsInf(low, 0):
			low = 0
		case math.IsInf(high, 0):
			high = low
		}
		total += float64(n) * (low + high) / 2
	}
	return sampled * total
}
