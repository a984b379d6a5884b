package telemetry

import (
	"slices"
	"sync/atomic"
	"time"
)

// Bounds are those of a Latency's buckets: a loopback's open takes less than the first,
// one that waits for the next process of a forwarder takes the last.
var Bounds = [...]time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Latency sums up durations.
type Latency struct {
	Nanoseconds int64   `json:"nanoseconds"`       // all together
	Buckets     []int64 `json:"buckets,omitempty"` // how many were within each of Bounds and above the one before; the last, above all
}

// histogram counts durations. The zero histogram is empty and ready.
type histogram struct {
	nanoseconds atomic.Int64
	buckets     [len(Bounds) + 1]atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i, _ := slices.BinarySearch(Bounds[:], d)
	h.buckets[i].Add(1)
	h.nanoseconds.Add(int64(d))
}

func (h *histogram) latency() Latency {
	l := Latency{Nanoseconds: h.nanoseconds.Load()}
	if l.Nanoseconds == 0 {
		return l
	}
	for i := range h.buckets {
		l.Buckets = append(l.Buckets, h.buckets[i].Load())
	}
	return l
}
