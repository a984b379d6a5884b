package archive

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

// Whoever waits has what was read since it began to, and many share a reading.
func TestMemoryReads(t *testing.T) {
	m := Archive{}.Remembering().memory
	var state, readings atomic.Int64
	read := func(context.Context) (offering, error) {
		readings.Add(1)
		return offering{rollout: Rollout{revision: state.Load()}}, nil
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				before := state.Add(1)
				if is, err := m.read(t.Context(), read); err != nil || is.rollout.revision < before {
					t.Errorf("revision %d, %v: want %d at least", is.rollout.revision, err, before)
					return
				}
			}
		})
	}
	all.Wait()
	begun, held := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) }) // it reads once more for the one who has gone
	go m.read(t.Context(), func(context.Context) (offering, error) {
		begin()
		<-held
		return offering{}, nil
	})
	<-begun
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.read(gone, read); err == nil {
		t.Error("whoever has gone waits for a reading that hangs")
	}
	close(held)
	if readings.Load() == 0 || readings.Load() > 4001 {
		t.Errorf("%d readings", readings.Load())
	}
}

// A bucket is read anew when its key has changed.
func TestMemoryBuckets(t *testing.T) {
	m := Archive{}.Remembering().memory
	m.keep("a", 3, index{"fern": nil})
	if _, ok := m.bucket("a", 3); !ok {
		t.Error("it is not remembered")
	}
	if _, ok := m.bucket("a", 4); ok {
		t.Error("it is of another revision")
	}
	for i := range maxBuckets {
		m.keep(indexKey("tree", i), 1, nil)
	}
	if len(m.buckets) > maxBuckets {
		t.Errorf("%d buckets, want %d at most", len(m.buckets), maxBuckets)
	}
}
