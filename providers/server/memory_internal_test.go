package server

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemory checks that unused memory is returned once after each burst of requests, and that
// nothing runs without requests.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken, looked, returned atomic.Uint64
		m := memory{taken: func() uint64 { looked.Add(1); return taken.Load() }, giveUp: func() { returned.Add(1) }}
		burst := func(lasting time.Duration) {
			for end := time.Now().Add(lasting); time.Now().Before(end); time.Sleep(time.Second) {
				taken.Add(10 << 20)
				m.touch()
			}
		}
		burst(5 * time.Minute)
		if n := returned.Load(); n != 0 {
			t.Errorf("memory is returned %d times while it is in use", n)
		}
		time.Sleep(2 * lookAfter)
		if n := returned.Load(); n != 1 {
			t.Errorf("memory is returned %d times after a burst, want once", n)
		}
		was := looked.Load()
		time.Sleep(time.Hour)
		if n := looked.Load() - was; n != 0 {
			t.Errorf("it is looked at %d times without a request", n)
		}
		m.touch()
		time.Sleep(2 * lookAfter)
		if returned.Load() != 1 {
			t.Error("memory is returned after a request that took none")
		}
		taken.Add(worth)
		m.touch()
		time.Sleep(2 * lookAfter)
		if n := returned.Load(); n != 2 {
			t.Errorf("memory is returned %d times after two bursts", n)
		}
	})
}
