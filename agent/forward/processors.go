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
	// crowded is how many goroutines wait on average, for each processor, for there to be
	// more of them; deserted is how many would for there to be fewer.
	crowded, deserted = 4, 3
	// sampled is of how many goroutines that become runnable the runtime measures one.
	sampled = 8
)

// most processors would be used otherwise: those that the process may, or of which its control
// group has the time.
var most = runtime.GOMAXPROCS(0)

// AdaptProcessors has the Go runtime use as many processors as there is work for until ctx ends, unless
// GOMAXPROCS is set in the environment. What goes from goroutine to goroutine, as each packet of a
// stream does, costs twice as much where each of them is woken up on a processor of its own: so a
// process begins with one, and gets more when goroutines wait for their turn.
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

// enough is how many to use, of at most so many, when on average so many goroutines wait for
// those that are used.
func enough(used, most int, waiting float64) int {
	switch {
	case waiting > float64(crowded*used):
		return min(2*used, most)
	case waiting < float64(deserted*(used-1)):
		return used - 1
	}
	return used
}

// waited is for how long goroutines have waited for a processor, all together, in seconds. By
// how much it grows in a second is how many wait (Little's law).
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
