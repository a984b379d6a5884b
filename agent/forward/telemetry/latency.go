package telemetry

import (
	"slices"
	"sync/atomic"
	"time"
)

// Bounds contains the upper bounds of the buckets in a Latency. For example, the first bucket
// counts streams that are opened over loopback. The last bucket counts streams that have to wait
// for the next process of a forwarder.
var Bounds = [...]time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Latency is a histogram of durations, as flor status shows it.
type Latency struct {
	Nanoseconds int64   `json:"nanoseconds"`       // sum of all durations
	Buckets     []int64 `json:"buckets,omitempty"` // number of durations in each bucket; the last bucket is above all Bounds
}

// histogram counts durations in buckets. The zero histogram is ready for use.
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
